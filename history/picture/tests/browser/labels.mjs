// Labels: none is cut, none prints over another, no line of a violation runs through one, and the name of a
// lane stands above it.

/* Runs in the page. Returns the boxes of all visible labels, and of what must not touch them. */
export function measure() {
  const isVisible = (node) => node.getClientRects().length > 0;
  const box = (node) => {
    const { left, right, top, bottom } = node.getBoundingClientRect();
    return { left, right, top, bottom, text: node.textContent };
  };
  const isDrawing = (svg) => isVisible(svg) && svg.querySelector("text");
  const svgs = [...document.querySelectorAll("svg.drawing")].filter(isDrawing);
  const drawings = svgs.map((svg) => {
    const texts = [...svg.querySelectorAll("text")];
    const lines = (text) => [...text.querySelectorAll("tspan")];
    const words = texts.flatMap((text) => lines(text).length ? lines(text) : [text]);
    return {
      texts: words.filter((text) => text.textContent.trim() && text.getComputedTextLength() > 0)
        .map((text) => ({ ...box(text), owner: texts.findIndex((owner) => owner.contains(text)) })),
      lines: [...svg.querySelectorAll(".violation-line, .difference")].map(box),
      frame: box(svg),
    };
  });
  const sheets = [...document.querySelectorAll(".sheet")].filter(isVisible).map((sheet) => ({
    names: [...sheet.querySelectorAll(".head .lane")].map((lane) => {
      const { left, right } = box(lane.querySelector(".badge") ?? lane);
      return { text: lane.querySelector(".name").textContent, x: (left + right) / 2 };
    }),
    lives: [...sheet.querySelectorAll(".body line.life")].map((line) => box(line).left),
  }));
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  return { drawings, sheets, font: svgs.length ? smallest(svgs) : null, wide };

  function smallest(all) {
    const sizes = all.flatMap((svg) => [...svg.querySelectorAll("text")].map((text) => {
      const scale = text.getScreenCTM()?.a ?? 1;
      return parseFloat(getComputedStyle(text).fontSize) * scale;
    }));
    return Math.min(...sizes);
  }
}

/* A phone has room for this many lanes beside each other; it scrolls over more. */
const LANES_MAX = 12;

/* Boxes of fonts are higher than their letters: this much may touch, in pixels. */
const SLACK = 1.5;

function overlap(one, other) {
  return one.left < other.right - SLACK && other.left < one.right - SLACK
    && one.top < other.bottom - SLACK && other.top < one.bottom - SLACK;
}

export function labelFaults({ drawings, sheets, font, wide }, form, isFile) {
  const faults = [];
  const sample = (kind, found) => {
    if (found.length) faults.push(`${found.length} ${kind}, such as ${found.slice(0, 3).join("; ")}`);
  };
  const cut = [], over = [], struck = [], outside = [];
  for (const { texts, lines, frame } of drawings) {
    cut.push(...texts.filter(({ text }) => text.trim().endsWith("…")).map(({ text }) => `"${text}"`));
    const sorted = [...texts].sort((one, other) => one.top - other.top);
    sorted.forEach((one, number) => {
      for (let next = number + 1; next < sorted.length && sorted[next].top < one.bottom; next += 1) {
        const other = sorted[next];
        if (one.owner !== other.owner && overlap(one, other)) over.push(`"${one.text}" and "${other.text}"`);
      }
    });
    for (const line of lines) {
      const hit = texts.filter((text) => text.top + 2 < line.top && line.top < text.bottom - 2
        && line.left < text.right && text.left < line.right);
      struck.push(...hit.map(({ text }) => `"${text}"`));
    }
    outside.push(...texts.filter((text) => text.left < frame.left - 1 || text.right > frame.right + 1
      || text.bottom > frame.bottom + 1).map(({ text }) => `"${text}"`));
  }
  sample("labels are cut", cut);
  sample("labels print over each other", over);
  sample("labels are struck through", struck);
  sample("labels leave the drawing", outside);
  for (const { names, lives } of sheets) {
    const off = names.filter(({ x }, number) => Math.abs(x - lives[number]) > 1);
    sample("names are not above their lanes", off.map(({ text }) => `"${text}"`));
  }
  if (isFile && form === "wide") {
    const width = drawings[0].frame.right - drawings[0].frame.left;
    const size = font * Math.min(1, 830 / width);
    if (size < 10) faults.push(`the smallest text has ${size.toFixed(1)} pixels at a width of 830`);
  }
  const hasMany = sheets.some(({ names }) => names.length > LANES_MAX);
  if (form === "phone" && !isFile && !hasMany && wide > 1) {
    faults.push(`the page is ${wide} pixels wider than the phone`);
  }
  return faults;
}
