"use strict";
const search = document.querySelector("#search");
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/);
  let found = 0;
  for (const card of document.querySelectorAll(".cards > li")) {
    const text = card.textContent.toLowerCase();
    card.hidden = !words.every((word) => text.includes(word));
    found += card.hidden ? 0 : 1;
  }
  document.querySelector("#found").textContent = search.value ? `${found} found` : "";
});
document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
