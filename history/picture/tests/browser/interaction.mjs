// Tests with the mouse and the finger.

const box = (tab, selector) => tab.locator(selector).first().boundingBox();

export async function interaction(tab) {
  return [...await chosenStays(tab), ...await panelIsWhole(tab), ...await zoomKeepsItsPlace(tab)];
}

/* Visible events within the window, below the names of the lanes. */
async function events(tab) {
  return tab.evaluate(() => {
    const top = document.querySelector(".wide .head").getBoundingClientRect().bottom;
    const canvas = document.querySelector(".canvas").getBoundingClientRect();
    const bottom = Math.min(innerHeight, canvas.bottom) - 10;
    return [...document.querySelectorAll(".wide .mark")].map((mark) => {
      const symbol = mark.querySelector(".body, .open").getBoundingClientRect();
      return { id: mark.dataset.id, x: symbol.left + symbol.width / 2, y: symbol.top + symbol.height / 2 };
    }).filter(({ x, y }) => y > top + 8 && y < bottom && x > canvas.left + 20 && x < canvas.right - 20);
  });
}

const chosen = async (tab) => (await tab.locator("#chosen a").getAttribute("href"))?.slice(1);

/* A mouse that rests on another event does not replace the one that was chosen. */
async function chosenStays(tab) {
  await tab.evaluate(() => document.querySelector(".canvas").scrollIntoView());
  const [one, other] = await events(tab);
  if (!other) return [];
  await tab.mouse.click(one.x, one.y);
  await tab.mouse.move(other.x, other.y);
  await tab.mouse.move(other.x + 1, other.y);
  const now = await chosen(tab);
  const faults = now === one.id ? [] : [`${one.id} was clicked, and the mouse over ${other.id} shows ${now}`];
  await tab.keyboard.press("Escape");
  return faults;
}

/* The panel of an event holds its text, and the legend begins below it. */
async function panelIsWhole(tab) {
  const id = await tab.evaluate(() => {
    const rows = [...document.querySelectorAll("table[data-picture] tbody tr")];
    return rows[rows.length - 1].id;
  });
  await tab.evaluate((id) => { location.hash = id; }, id);
  const isShown = (id) => document.querySelector("#chosen a")?.getAttribute("href") === `#${id}`;
  if (!await tab.waitForFunction(isShown, id, { timeout: 10000 }).catch(() => false)) {
    return [`a link to ${id} does not show it: a mouse at rest replaces it`];
  }
  const [inner, outer] = await tab.evaluate(() => {
    const chosen = document.querySelector("#chosen");
    return [chosen.scrollHeight, chosen.clientHeight];
  });
  const [panel, legend] = [await box(tab, "#chosen"), await box(tab, ".legend")];
  const faults = [];
  if (inner > outer + 1) faults.push(`the panel of ${id} has ${inner} pixels of text and is ${outer} high`);
  if (panel.y + panel.height > legend.y) faults.push("the panel of an event prints over the legend");
  return faults;
}

/* What is under the pointer stays under it while the drawing grows. */
async function zoomKeepsItsPlace(tab) {
  await tab.evaluate(() => {
    document.querySelector(".canvas").scrollTop = 0;
    document.querySelector(".canvas").scrollIntoView();
  });
  const mark = (await events(tab)).pop();
  if (!mark) return [];
  const faults = [];
  await tab.mouse.move(mark.x, mark.y);
  await tab.keyboard.down("Control");
  await tab.mouse.wheel(0, -150);
  await tab.keyboard.up("Control");
  const zoomed = () => document.querySelector("#whole").textContent !== "100 %";
  if (!await tab.waitForFunction(zoomed, null, { timeout: 30000 }).catch(() => false)) {
    return [`the wheel over ${mark.id} does not zoom`];
  }
  const after = await tab.evaluate((id) => {
    const symbol = document.querySelector(`.wide .mark[data-id="${id}"] :is(.body, .open)`);
    const { left, top, width, height } = symbol.getBoundingClientRect();
    return { x: left + width / 2, y: top + height / 2 };
  }, mark.id);
  const [dx, dy] = [after.x - mark.x, after.y - mark.y];
  if (Math.hypot(dx, dy) > 3) faults.push(`zoom moves what is under the mouse by ${dx}, ${dy}`);
  await tab.locator("#whole").click();
  return faults;
}

/* A tap on the label of an event chooses that event, of its own run. */
export async function touch(tab) {
  const wrong = await tab.evaluate(() => {
    const isVisible = (mark) => mark.getClientRects().length > 0;
    const marks = [...document.querySelectorAll(".mark[data-id]")].filter(isVisible);
    const found = [];
    for (const mark of marks) {
      for (const part of mark.querySelectorAll("text, .body, .open")) {
        part.scrollIntoView({ block: "center" });
        const { left, width, top, height } = part.getBoundingClientRect();
        const hit = document.elementFromPoint(left + width / 2, top + height / 2)?.closest(".mark");
        if (hit !== mark) found.push(`${mark.dataset.id} (${mark.querySelector("text").textContent})`);
      }
    }
    scrollTo(0, 0);
    return found;
  });
  const faults = wrong.length ? [`${wrong.length} taps miss their event, such as ${wrong[0]}`] : [];
  const near = await tab.evaluate(() => {
    const isVisible = (mark) => mark.getClientRects().length > 0;
    const marks = [...document.querySelectorAll(".mark[data-id]")].filter(isVisible);
    const height = (mark) => mark.querySelector(".hit")?.getBoundingClientRect().height ?? 0;
    return marks.filter((mark) => height(mark) < 15).length;
  });
  return near ? [...faults, `${near} events are too small for a finger`] : faults;
}
