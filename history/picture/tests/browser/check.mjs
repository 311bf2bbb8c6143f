// Opens pages from disk in Chromium and checks what a reader sees: `node check.mjs FOLDER [PAGE...]`. Prints
// each fault and exits with 1 if there is one. Set SCREENSHOTS to a folder to keep pictures of the pages.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { accessibility } from "./accessibility.mjs";
import { interaction, touch } from "./interaction.mjs";
import { measure, labelFaults } from "./labels.mjs";

const CHROMIUM = ["chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`)
  .find((file) => fs.existsSync(file));
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const FORMS = {
  wide: { viewport: { width: 1400, height: 1000 } },
  dark: { viewport: { width: 1400, height: 1000 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};

const [folder, ...named] = process.argv.slice(2);
const isPage = (file) => /\.(html|svg)$/.test(file);
const pages = named.length ? named : fs.readdirSync(folder).filter(isPage).sort();
const shots = process.env.SCREENSHOTS;
let faults = 0;

if (!CHROMIUM) {
  console.log("/usr/bin/chromium is missing: run `apt-get install chromium`");
  process.exit(1);
}
const profile = fs.mkdtempSync(path.join(os.tmpdir(), "dlock-chromium-"));
for (const [form, options] of Object.entries(FORMS)) {
  const context = await chromium.launchPersistentContext(path.join(profile, form),
    { executablePath: CHROMIUM, headless: true, args: FLAGS, ...options });
  for (const page of pages) await check(context, page, form);
  await context.close();
}
fs.rmSync(profile, { recursive: true, force: true });
console.log(`${pages.length} pages, ${faults} faults`);
process.exit(faults ? 1 : 0);

async function check(context, name, form) {
  const address = pathToFileURL(path.resolve(folder, name)).href;
  const tell = (fault) => {
    faults += 1;
    console.log(`${name}, ${form}: ${fault}`);
  };
  const tab = await context.newPage();
  tab.on("console", (message) => message.type() === "error" && tell(`console: ${message.text()}`));
  tab.on("pageerror", (error) => tell(`error: ${error.message}`));
  tab.on("request", (request) => request.url() !== address && tell(`asks for ${request.url()}`));
  await tab.goto(address);
  labelFaults(await tab.evaluate(measure), form, name.endsWith(".svg")).forEach(tell);
  if (shots) await keep(tab, `${name}-${form}`);
  if (name.endsWith(".html")) {
    (await accessibility(tab, form)).forEach(tell);
    const hasDrawing = await tab.locator("#chosen").count() > 0;
    if (hasDrawing && form === "wide") (await interaction(tab)).forEach(tell);
    if (hasDrawing && form === "phone") (await touch(tab)).forEach(tell);
    if (hasDrawing && form === "wide") (await paper(tab, name)).forEach(tell);
  }
  await tab.close();
}

async function keep(tab, name) {
  fs.mkdirSync(shots, { recursive: true });
  await tab.screenshot({ path: path.join(shots, `${name}.png`) });
}

/* On paper, each page with a part of the drawing has the names of all lanes. */
async function paper(tab, name) {
  const kept = shots ?? profile;
  const file = path.join(kept, `${name}.pdf`);
  await tab.goto(tab.url().split("#")[0]);
  const names = tab.locator(".wide .lane .name");
  const lanes = new Set(await names.allTextContents()).size;
  const parts = await tab.evaluate(() => document.querySelectorAll(".paper .part").length);
  /* Of the drawing, on the sheet of its class: 10 mm on both sides stay free. */
  const scale = await tab.evaluate(() => {
    const mm = { a4: 297, a3: 420, a2: 594, a1: 841, a0: 1189 };
    const width = (mm[document.querySelector(".paper").classList[1]] - 20) * 96 / 25.4;
    const widths = [...document.querySelectorAll(".paper .part > svg")].map((svg) => svg.width.baseVal.value);
    return width / Math.max(...widths);
  });
  /* The events that led to a violation have the same words as the drawing. */
  await tab.addStyleTag({ content: ".because { display: none; }" });
  await tab.pdf({ path: file, preferCSSPageSize: true });
  const options = { encoding: "utf8", maxBuffer: 1 << 28 };
  const sheets = execFileSync("pdftotext", ["-raw", file, "-"], options).split("\f");
  /* Words that are in the drawing alone. */
  const own = /asks for the lock|enters its section|leaves its section|^granted, token/m;
  const drawn = sheets.filter((sheet) => own.test(sheet));
  const roles = /^(worker|lock server|resource|faults of links)$|\b(worker|lock server)\b/gm;
  const bare = drawn.filter((sheet) => (sheet.match(roles) ?? []).length < lanes);
  const found = [];
  const percent = Math.round(scale * 100);
  if (!(scale >= 0.6)) found.push(`paper: the drawing is printed at ${percent} % of its size`);
  if (bare.length) found.push(`paper: ${bare.length} of ${drawn.length} pages lack names of lanes`);
  if (drawn.length === 0 || parts > sheets.length) found.push("paper: the drawing is not whole");
  return found;
}
