// The rules of axe-core: contrast, names, roles, the order of headings.
import fs from "node:fs";
import { createRequire } from "node:module";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/* Contrast takes most of the time. In the dark a page differs by its colours alone, and on a phone by all but
   them. */
const CONTRAST = "color-contrast";
const RULES = {
  wide: {},
  dark: { runOnly: { type: "rule", values: [CONTRAST] } },
  phone: { rules: { [CONTRAST]: { enabled: false } } },
};

export async function accessibility(tab, form) {
  await tab.evaluate(axe);
  const options = { resultTypes: ["violations"], ...RULES[form] };
  const { violations } = await tab.evaluate((options) => globalThis.axe.run(document, options), options);
  return violations.map(({ id, nodes }) => `axe: ${id} ${nodes.length} times, such as ${nodes[0].target}`);
}
