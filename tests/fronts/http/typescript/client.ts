// A program that calls a service through the types generated from its description.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };
const [baseUrl, session_id] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl });

async function call(tool: string, args: Record<string, unknown>): Promise<components["schemas"]["ToolResult"]> {
  const { data, error } = await client.POST("/api/v1/sessions/{session_id}/tools/{tool}", {
    params: { path: { session_id, tool } },
    body: { arguments: args, context: { role: "developer" } },
  });
  // A string is a stream of events, which was not requested.
  if (data === undefined || typeof data === "string") throw new Error(JSON.stringify(error));
  return data;
}

const created = await client.POST("/api/v1/sessions", { body: { session_id, limits: { entries: 10 } } });
const limit: number | null | undefined = created.data?.limits.entries;

const written = await call("file_write", { path: "a.txt", content: "hello\n" });
const outside = await call("file_read", { path: "../secret" });

const listed = await client.GET("/api/v1/sessions/{session_id}/files", { params: { path: { session_id } } });
const sizes: number[] = listed.data?.entries.map((file) => file.size_bytes) ?? [];

const run = await client.POST("/api/v1/sessions/{session_id}/exec", {
  params: { path: { session_id } },
  body: { command: "cat a.txt" },
  headers: { Accept: "application/json" },
});
// The alternative is the text of a stream of events.
const printed: string | undefined = typeof run.data === "object" ? run.data.result?.stdout : undefined;

const missing = await client.POST("/api/v1/sessions/{session_id}/operations/stat", {
  params: { path: { session_id } },
  body: { path: "missing" },
});
const code: string | undefined = missing.error?.error.code;

// @ts-expect-error: a search needs a query
void (() => client.POST("/api/v1/sessions/{session_id}/operations/search", { params: { path: { session_id } }, body: {} }));

console.log(JSON.stringify({ limit, written: written.success, outside: outside.metadata["code"], sizes, printed, code }));
