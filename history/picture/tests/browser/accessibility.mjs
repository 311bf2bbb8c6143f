// The rules of axe-core: contrast, names, roles, the order of headings.
import fs from "node:fs";
import { createRequire } from "node:module";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function accessibility(tab) {
  await tab.evaluate(axe);
  const options = { resultTypes: ["violations"] };
  const { violations } = await tab.evaluate((options) => globalThis.axe.run(document, options), options);
  return violations.map(({ id, nodes }) => `axe: ${id} ${nodes.length} times, such as ${nodes[0].target}`);
}
