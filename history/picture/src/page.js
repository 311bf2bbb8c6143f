"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const data = JSON.parse(one("#data").textContent);
  const rows = new Map(all("table[data-picture] tbody tr").map((row) => [row.id, row]));
  const marks = new Map();
  for (const mark of all(".mark[data-id]")) {
    const same = marks.get(mark.dataset.id) ?? [];
    marks.set(mark.dataset.id, [...same, mark]);
  }
  const ids = [...rows.keys()];
  const place = new Map(ids.map((id) => [id, pictureAndIndex(id)]));
  const chosen = one("#chosen");
  let kept = null;
  let zoom = 1;

  function pictureAndIndex(id) {
    const row = rows.get(id);
    return { picture: Number(row.closest("table").dataset.picture), index: row.sectionRowIndex };
  }

  /* The form of the drawing that is visible: wide or narrow. */
  const visible = (id) => (marks.get(id) ?? []).find((mark) => mark.getClientRects().length > 0);

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text;
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  }

  /* Shows an event, and the state of the world before and after it. */
  function show(id) {
    const row = rows.get(id);
    if (!row) return;
    const [number, time, process] = [...row.cells].map((cell) => cell.textContent);
    const { picture, index } = place.get(id);
    const state = new Map();
    data[picture].slice(0, index).flat().forEach(([fact, , after]) => state.set(fact, after));
    const list = element("dl", "");
    const changed = new Set();
    for (const [fact, before, after, isByTime] of data[picture][index]) {
      if (isByTime) {
        state.set(fact, after);
        continue;
      }
      changed.add(fact);
      const group = element("div", "", { class: "changed" });
      const value = element("dd", "");
      value.append(element("del", `${before} → `), element("ins", after, { style: "text-decoration:none" }));
      group.append(element("dt", fact), value);
      list.append(group);
    }
    for (const [fact, value] of state) {
      if (!changed.has(fact)) list.append(element("dt", fact), element("dd", value));
    }
    const link = element("a", `Event ${number}`, { href: `#${id}` });
    const head = element("h2", "");
    head.append(link);
    const what = element("p", `${time} s, ${process}: ${one(".what", row).textContent}`);
    const about = element("p", changed.size ? "State, first what changes:" : "State, unchanged:", { class: "hint" });
    chosen.replaceChildren(head, what, about, list);
  }

  function choose(id, scroll) {
    all(".mark.chosen, tr.chosen").forEach((old) => old.classList.remove("chosen"));
    kept = id;
    marks.get(id)?.forEach((mark) => mark.classList.add("chosen"));
    rows.get(id)?.classList.add("chosen");
    if (!rows.has(id)) return;
    show(id);
    rove(id);
    if (scroll) visible(id)?.scrollIntoView({ block: "center", inline: "nearest" });
  }

  /* Only one event is reached by the tab key; the arrow keys move on from it. */
  function rove(id) {
    all('.mark[tabindex="0"]').forEach((mark) => mark.setAttribute("tabindex", "-1"));
    marks.get(id)?.forEach((mark) => mark.setAttribute("tabindex", "0"));
  }

  const isDim = (id) => marks.get(id)?.[0].classList.contains("dim");

  function next(id, step, fits) {
    for (let at = ids.indexOf(id) + step; at >= 0 && at < ids.length; at += step) {
      if (!isDim(ids[at]) && fits(ids[at])) return ids[at];
    }
    return null;
  }

  const laneOf = (id) => {
    const { picture } = place.get(id);
    return picture * 1000 + Number(rows.get(id).dataset.lane);
  };

  function beside(id, step) {
    const lane = laneOf(id);
    const lanes = [...new Set(ids.map(laneOf))].sort((a, b) => a - b);
    const other = lanes[lanes.indexOf(lane) + step];
    if (other === undefined) return null;
    const fits = (candidate) => laneOf(candidate) === other;
    return next(id, 1, fits) ?? next(id, -1, fits);
  }

  function go(id) {
    if (!id) return;
    rove(id);
    visible(id)?.focus();
    visible(id)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function filter() {
    const words = one("#search").value.trim().toLowerCase();
    const process = one("#process").value;
    const key = one("#key")?.value ?? "";
    let found = 0;
    for (const [id, row] of rows) {
      const fits = (!words || row.textContent.toLowerCase().includes(words))
        && (!process || row.cells[2].textContent === process)
        && (!key || row.dataset.key === key);
      found += fits ? 1 : 0;
      row.classList.toggle("dim", !fits);
      marks.get(id)?.forEach((mark) => mark.classList.toggle("dim", !fits));
    }
    all(".bar[data-key]").forEach((bar) => bar.classList.toggle("dim", Boolean(key) && bar.dataset.key !== key));
    const isOn = words || process || key;
    all(".messages").forEach((group) => group.classList.toggle("dim", Boolean(isOn)));
    one("#found").textContent = isOn ? `${found} of ${rows.size} events` : "";
  }

  const canvas = one(".canvas");

  /* Zooms, so that what is under the point `at` of the window stays there. */
  function scale(factor, at = middle()) {
    const sheet = all(".sheet").find((candidate) => candidate.getClientRects().length > 0);
    const body = one(".body", sheet);
    const before = body.getBoundingClientRect();
    const [, , width, height] = body.getAttribute("viewBox").split(" ").map(Number);
    const [x, y] = [(at.x - before.left) / before.width * width, (at.y - before.top) / before.height * height];
    zoom = Math.min(4, Math.max(0.25, factor));
    all(".sheet svg").forEach((svg) => {
      const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
      svg.setAttribute("width", width * zoom);
      svg.setAttribute("height", height * zoom);
    });
    const after = body.getBoundingClientRect();
    /* What the drawing itself can't scroll, the window does. */
    for (const [axis, delta] of [["Left", after.left + x * zoom - at.x], ["Top", after.top + y * zoom - at.y]]) {
      const old = canvas[`scroll${axis}`];
      canvas[`scroll${axis}`] = old + delta;
      const rest = delta - (canvas[`scroll${axis}`] - old);
      if (Math.abs(rest) >= 1 && !isScroller()) scrollBy(axis === "Left" ? rest : 0, axis === "Top" ? rest : 0);
    }
    one("#whole").textContent = `${Math.round(zoom * 100)} %`;
  }

  const isScroller = () => getComputedStyle(canvas).overflowY === "auto";

  /* The middle of the part of the drawing that is visible. */
  function middle() {
    const box = canvas.getBoundingClientRect();
    return { x: (Math.max(0, box.left) + Math.min(innerWidth, box.right)) / 2,
      y: (Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2 };
  }

  for (const [id, same] of marks) {
    for (const mark of same) {
      mark.setAttribute("tabindex", "-1");
      /* What is chosen stays, wherever the mouse is. */
      mark.addEventListener("mouseenter", () => kept || show(id));
      mark.addEventListener("focus", () => mark.matches(":focus-visible") && choose(id, false));
      mark.addEventListener("click", (event) => {
        event.preventDefault();
        history.replaceState(null, "", `#${id}`);
        choose(id, false);
      });
    }
  }
  if (ids.length) rove(ids[0]);

  document.addEventListener("keydown", (event) => {
    const mark = event.target.closest?.(".mark[data-id]");
    const isTyping = event.target.matches?.("input, select");
    if (event.key === "Escape") {
      choose(null, false);
    } else if (event.key === "/" && !isTyping) {
      event.preventDefault();
      one("#search").focus();
    } else if (!isTyping && !event.ctrlKey && !event.metaKey && ["+", "-", "0"].includes(event.key)) {
      scale({ "+": zoom * 1.25, "-": zoom / 1.25, 0: 1 }[event.key]);
    } else if (mark && event.key.startsWith("Arrow")) {
      event.preventDefault();
      const id = mark.dataset.id;
      const any = () => true;
      go({ ArrowDown: () => next(id, 1, any), ArrowUp: () => next(id, -1, any),
        ArrowLeft: () => beside(id, -1), ArrowRight: () => beside(id, 1) }[event.key]());
    }
  });

  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    scale(zoom * Math.exp(-event.deltaY / 300), { x: event.clientX, y: event.clientY });
  }, { passive: false });

  /* Drag with the mouse to pan; touch pans by itself. */
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.target.closest("a")) return;
    drag = { x: event.clientX + canvas.scrollLeft, y: event.clientY + canvas.scrollTop };
  });
  addEventListener("pointermove", (event) => {
    if (drag) canvas.scrollTo(drag.x - event.clientX, drag.y - event.clientY);
  });
  addEventListener("pointerup", () => { drag = null; });

  one("#search").addEventListener("input", filter);
  all("select").forEach((select) => select.addEventListener("change", filter));
  one(".controls").addEventListener("submit", (event) => event.preventDefault());
  one("#smaller").addEventListener("click", () => scale(zoom / 1.25));
  one("#larger").addEventListener("click", () => scale(zoom * 1.25));
  one("#whole").addEventListener("click", () => scale(1));

  function showMessage(message) {
    const bytes = element("details", "");
    bytes.append(element("summary", "Bytes"), element("code", message.dataset.bytes));
    const parts = [element("h2", "Message"), element("p", message.dataset.words)];
    chosen.replaceChildren(...parts, ...(message.dataset.bytes ? [bytes] : []));
  }

  for (const message of all(".message[data-words]")) {
    message.addEventListener("mouseenter", () => kept || showMessage(message));
    message.addEventListener("click", () => {
      choose(null, false);
      kept = message;
      showMessage(message);
    });
  }

  function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (rows.has(id)) choose(id, true);
  }
  addEventListener("hashchange", follow);
  follow();
})();
