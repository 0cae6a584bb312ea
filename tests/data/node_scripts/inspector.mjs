// The Inspector's command line, many times in one process: a line of JSON on stdin is an argument list, a line on stdout what came of it.
// Arguments: the module that has the command line, and the name of the function that runs it.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [module, name] = process.argv.slice(2);
const run = (await import(pathToFileURL(module).href))[name];

const kept = { stdout: process.stdout.write.bind(process.stdout) };
let said = { stdout: "", stderr: "" };
for (const stream of ["stdout", "stderr"]) {
  process[stream].write = (data, encoding, done) => {
    said[stream] += data;
    (typeof encoding === "function" ? encoding : done)?.();
    return true;
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  said = { stdout: "", stderr: "" };
  let code = 0;
  try {
    await run(["node", "inspector", ...JSON.parse(line)]);
  } catch (error) {
    code = error.exitCode ?? 1;
    said.stderr += error.message;
  }
  kept.stdout(`${JSON.stringify({ code, ...said })}\n`);
}
process.exit(0);
