/**
 * Writes the traces of failed sessions to the folder of the option `traceFolder`: the events of the session
 * from the flight recorder, for `rdma-rpc trace`. FabricContext uses this file when a session ends, on its JS
 * thread. The thread copies at most 128 KiB. It writes the file asynchronously, or at once when it ends.
 */
import { closeSync, constants, mkdirSync, openSync, writeSync } from 'node:fs';
import { mkdir, unlink, writeFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { clockMs, systemNs, wallMs } from '../../clock.ts';
import { processWarning } from '../../core/warnings.ts';
import { traceFilesMax } from '../../limits.ts';
import { eventMethodAt, eventRowBytes } from '../../native/event-row.ts';
import type { NativeContext } from '../../native/native.ts';
import { KeptTraces } from './kept-traces.ts';
import { methodName } from './method-names.ts';
import { type TraceAbout, traceFile } from './trace-file.ts';

/**
 * Returns the program without its arguments. Arguments are left out, because they may contain secrets, and
 * users send trace files to other people. Node makes the path of a script absolute; with --eval there is no
 * script.
 */
function program(): string {
  const [runtime = '', script = ''] = process.argv;
  return isAbsolute(script) ? `${runtime} ${script}` : runtime;
}

let files = 0;
const kept = new KeptTraces(traceFilesMax);
/** Files are written one after the other, so that a file is complete before it can be replaced. */
let written: Promise<void> = Promise.resolve();
let warned = false;
/** The traces whose files are not complete, by path. */
const pending = new Map<string, { readonly folder: string; readonly bytes: Uint8Array }>();

/**
 * Completes the files at once, because nothing asynchronous runs any more when a process ends. Many programs
 * end because of the failure that the trace explains. A file that has been begun gets the same bytes again.
 */
function writeAtExit(): void {
  for (const [path, { folder, bytes }] of pending) {
    try {
      mkdirSync(folder, { recursive: true });
      const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
      writeSync(file, bytes);
      closeSync(file);
    } catch {
      // The process ends, so nobody can be told.
    }
  }
}

function methodsIn(rows: Uint8Array): { id: number; name: string }[] {
  const words = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
  const ids = new Set<number>();
  for (let at = 0; at < rows.length; at += eventRowBytes) {
    const id = words.getUint32(at + eventMethodAt, true);
    // Parts of a stream carry the id of the method with the lowest bit inverted.
    ids.add(id).add((id ^ 1) >>> 0);
  }
  return [...ids].flatMap((id) => {
    const name = methodName(id);
    return name === undefined ? [] : [{ id, name }];
  });
}

async function write(
  folder: string,
  path: string,
  bytes: Uint8Array,
  replaced: string | undefined,
): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(path, bytes, { flag: 'wx', mode: 0o600 });
    // The file may have been moved away.
    if (replaced !== undefined) await unlink(replaced).catch(() => undefined);
  } catch (cause) {
    if (warned) return;
    warned = true;
    processWarning(
      `a session has failed, and its trace cannot be written: ${(cause as Error).message} (option traceFolder, or RDMA_RPC_TRACE_FOLDER). This is said once.`,
    );
  }
}

/**
 * Writes the trace with the last event of a session. It does nothing for a session that has ended normally.
 */
export function saveTrace(folder: string, native: NativeContext, fabric: string, session: number): void {
  const reason = native.sessionError(session);
  const nowMs = clockMs();
  if (!kept.wants(reason, nowMs)) return;
  const trace = native.sessionTrace(session);
  if (trace === undefined) return;
  const { rows, client, peer } = trace;
  const about: TraceAbout = {
    pid: process.pid,
    command: program(),
    atNs: systemNs(),
    wallMs: wallMs(),
    reason,
    contexts: [
      {
        fabric,
        device: native.sessionInfo(session).device,
        rows: rows.length / eventRowBytes,
        sessions: [{ number: session, side: client ? 'client' : 'server', peer }],
        methods: methodsIn(rows),
      },
    ],
  };
  // The file name contains the time, because process ids recur in containers.
  const path = join(folder, `rdma-rpc-${process.pid}-${threadId}-${about.wallMs}-${++files}.trace`);
  const bytes = traceFile(about, [rows]);
  const replaced = kept.add(path, reason, nowMs);
  if (pending.size === 0) process.on('exit', writeAtExit);
  pending.set(path, { folder, bytes });
  written = written
    .then(() => write(folder, path, bytes, replaced))
    .then(() => {
      pending.delete(path);
      if (pending.size === 0) process.off('exit', writeAtExit);
    });
}
