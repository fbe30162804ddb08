#!/usr/bin/env node
/**
 * `protoc-gen-rdma-rpc`, the plugin for protoc and buf. It reads a request from standard input and writes the
 * response to standard output. Errors in the input are part of the response, which protoc prints. Exit code 1
 * means that the plugin itself could not run.
 */
import { formatDiagnostic } from '../codegen/diagnostic.ts';
import { runPlugin } from '../codegen/plugin.ts';
import { endWithOutput } from './output.ts';

/**
 * Read standard input as a stream. Standard input may be a pipe that its writer has made non-blocking, as buf
 * does. Such a pipe may not have all bytes yet when it is read.
 */
async function readAll(): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

if (process.stdin.isTTY) {
  console.error(
    'protoc-gen-rdma-rpc is started by protoc (--rdma-rpc_out=DIR) or buf; by hand use rdma-rpc gen',
  );
  process.exitCode = 1;
} else {
  endWithOutput('protoc-gen-rdma-rpc');
  const { response, warnings } = runPlugin(await readAll());
  for (const warning of warnings) console.error(formatDiagnostic(warning));
  process.stdout.write(response);
}
