/**
 * `rdma-rpc bench`: puts load on one method of a server (ours or a gRPC server) and reports the results. The
 * exit code is 1 when calls fail or the server cannot be reached.
 */
import { closeSync, openSync } from 'node:fs';
import type { Command } from '#commander';
import { jsonText, printable, writeOutput } from '../output.ts';
import { sayError } from '../server/connection.ts';
import { withSchemaFlags } from '../server/schema-flags.ts';
import { securityOf } from '../server/tls-flags.ts';
import { type BenchFlags, planOf, withBenchFlags } from './flags.ts';
import type { Plan } from './load.ts';
import type { Target } from './target.ts';

export function addBenchCommand(program: Command): void {
  withSchemaFlags(
    withBenchFlags(
      program
        .command('bench')
        .description(
          'put load on a method and report latencies and rates; asks the server for the method (reflection) or reads files',
        )
        .argument('<address>', 'host:port or unix:/path')
        .argument('<method>', 'such as greeter.v1.Greeter/SayHello'),
    ),
  ).action(async (address: string, path: string, flags: BenchFlags) => {
    let plan: Plan;
    try {
      plan = planOf(flags);
    } catch (error) {
      sayError(error, flags);
      process.exitCode = 2;
      return;
    }
    process.exitCode = await bench(address, path, flags, plan);
    // grpc-js does not end a TLS handshake that hangs, and its socket would keep the process alive.
    if (flags.grpc === true) process.exit();
  });
}

async function bench(address: string, path: string, flags: BenchFlags, plan: Plan): Promise<number> {
  const { connections, fabric, timeout: timeoutMs } = flags;
  let target: Target;
  try {
    const open =
      flags.grpc === true
        ? (await import('./grpc-target.ts')).openGrpc
        : (await import('./target.ts')).openChannels;
    target = await open({
      address,
      connections,
      timeoutMs,
      fabric,
      security: securityOf(flags),
    });
  } catch (error) {
    sayError(error, flags);
    // An invalid address is reported before a connection is tried.
    return error instanceof TypeError || error instanceof RangeError ? 2 : 1;
  }
  const files = new OutputFiles();
  try {
    // The files are opened before the load rather than after it, so that a missing folder is noticed at once.
    files.open(flags);
    const [{ runBench }, { summaryText }] = await Promise.all([import('./run.ts'), import('./summary.ts')]);
    const { result, recording } = await runBench(target, address, path, flags, plan);
    if (flags.html !== undefined) files.write(flags.html, [(await import('./page.ts')).pageOf(result)]);
    if (flags.hdrLog !== undefined)
      files.write(flags.hdrLog, [
        (await import('./hdr-log.ts')).hdrLog(recording, new Date(result.startedAt)),
      ]);
    if (flags.csv !== undefined && recording.table !== undefined) {
      files.write(flags.csv, recording.table.csv());
      if (recording.table.left > 0)
        console.error(`${flags.csv} contains only the first calls; ${recording.table.left} more were made`);
    }
    console.log(flags.json === true ? jsonText(result, 2) : printable(summaryText(result)));
    return result.calls.failed > 0 || result.calls.unsent > 0 ? 1 : 0;
  } catch (error) {
    sayError(error, flags);
    return 1;
  } finally {
    files.close();
    await target.close();
  }
}

/** The output files. They are opened before the load and written after it. */
class OutputFiles {
  readonly #open = new Map<string, number>();

  /** Throws an Error that names the file when a file cannot be written. */
  open({ csv, html, hdrLog }: BenchFlags): void {
    for (const path of [csv, html, hdrLog]) {
      if (path === undefined) continue;
      if (this.#open.has(path))
        throw new Error(`${path} is given twice: each kind of output needs a file of its own`);
      try {
        this.#open.set(path, openSync(path, 'w'));
      } catch (error) {
        throw new Error(`${path} cannot be written: ${(error as NodeJS.ErrnoException).code}`);
      }
    }
  }

  write(path: string, parts: Iterable<string>): void {
    for (const part of parts) writeOutput(path, part, { file: this.#open.get(path)! });
  }

  close(): void {
    for (const file of this.#open.values()) closeSync(file);
  }
}
