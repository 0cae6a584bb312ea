// A whole interactive session with a TypeScript client. Arguments: the package, the era it is to speak, the address, the token.
// Read on stdin by Node, so that packages are found from its working directory. What happened is printed as one object.
const [name, era, url, token] = process.argv.slice(2);
const isFirst = name === "@modelcontextprotocol/sdk";
const { Client } = await import(isFirst ? `${name}/client/index.js` : name);
const { StreamableHTTPClientTransport } = await import(isFirst ? `${name}/client/streamableHttp.js` : name);

const options = isFirst ? {} : { versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : "legacy" } };
const client = new Client({ name: "session", version: "1.0.0" }, options);
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));

// Takes the output schemas, which every result is then checked against.
const { tools } = await client.listTools();
const progress = [];
const call = async (tool, given, extra = {}) => {
  const params = { name: tool, arguments: given };
  return isFirst ? client.callTool(params, undefined, extra) : client.callTool(params, extra);
};

const program = `python3 -c "name = input('Name: '); n = int(input('Number: ')); print('Hello', name, n + 1)"`;
const turns = [await call("start_interactive_command", { command: program })];
const session_id = turns[0].structuredContent.session_id;
for (const input_text of ["Ada\n", "41\n"]) turns.push(await call("send_command_input", { session_id, input_text }));
while (turns.at(-1).structuredContent.state === "running") turns.push(await call("send_command_input", { session_id }));

const refused = await call("send_command_input", { session_id: "00000000-0000-4000-8000-000000000000", input_text: "x" });
const invalid = await call("send_command_input", { session_id: 7, no_such_argument: true });
const late = await call("send_command_input", { session_id, input_text: "more\n" });
let unknown;
try {
  await call("no_such_tool", {});
} catch (error) {
  unknown = error.code;
}
await call("execute_command", { command: "sleep 2" }, { onprogress: (report) => progress.push(report.message) });
const { contents } = await client.readResource({ uri: `holdline://session/${session_id}/transcript` });
const { prompts } = await client.listPrompts();
const { messages } = await client.getPrompt({ name: prompts[0].name, arguments: { command: "true" } });

await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => [tool.name, tool.outputSchema !== undefined]),
    turns: turns.map((turn) => turn.structuredContent),
    errors: [refused, invalid, late].map((result) => ({
      isError: result.isError,
      hasStructured: result.structuredContent !== undefined,
      code: JSON.parse(result.content[0].text).code,
    })),
    unknown,
    progress,
    transcript: contents[0].text,
    prompt: messages[0].content.text,
  }),
);
