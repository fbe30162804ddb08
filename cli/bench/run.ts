/**
 * Runs one load from beginning to end: looks up the method, makes the requests, and counts and times the
 * calls. bench.ts uses this file.
 */
import { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import { serviceOf, sizeType } from '../server/raw-type.ts';
import { fromFiles, type Schema } from '../server/schema/schema.ts';
import { findMethod } from '../server/schema/suggest.ts';
import { realClock } from './clock.ts';
import { dataText, type Requests, requestsOf } from './data.ts';
import type { BenchFlags } from './flags.ts';
import { type End, LoadRun, type MakeCall, type Plan } from './load.ts';
import { showProgress } from './progress.ts';
import { Recording } from './recording.ts';
import { type Result, resultOf, scheduleOf, travelledIn } from './result.ts';
import type { AnyCall, Target } from './target.ts';

async function schemaFor(target: Target, flags: BenchFlags): Promise<Schema> {
  if (fromFiles(flags)) return (await import('../server/schema/file-schema.ts')).fileSchema(flags);
  return (await import('../server/schema/remote-schema.ts')).remoteSchema(target.reflection);
}

const endOf = (error: unknown): End =>
  error instanceof RpcError
    ? { code: error.codeName, message: error.rawMessage, responseBytes: 0 }
    : { code: 'UNKNOWN', message: (error as Error).message, responseBytes: 0 };

interface Sent {
  bytes: number;
  messages: number;
  answers: number;
}

function callerOf(
  calls: readonly AnyCall[],
  requests: Requests,
  metadata: BenchFlags['metadata'],
  stream: boolean,
  sent: Sent,
): MakeCall {
  const options = { metadata };
  return async (call, worker) => {
    let count = 0;
    try {
      const messages = requests({ call, worker });
      for (const message of messages) sent.bytes += message.byteLength;
      count = messages.length;
      sent.messages += count;
      const answer = calls[worker % calls.length]!(stream ? messages : messages[0], options);
      let responseBytes = 0;
      if (Symbol.asyncIterator in answer) for await (const each of answer) responseBytes += each.byteLength;
      else responseBytes = (await answer).byteLength;
      ++sent.answers;
      return { code: 'OK', responseBytes };
    } catch (error) {
      // The message may have waited on this side without being sent.
      if (RpcError.from(error).processed === 'no') sent.messages -= count;
      return endOf(error);
    }
  };
}

export async function runBench(
  target: Target,
  address: string,
  path: string,
  flags: BenchFlags,
  plan: Plan,
): Promise<{ result: Result; recording: Recording }> {
  const { method, registry } = await findMethod(await schemaFor(target, flags), path);
  const { clientStreaming, serverStreaming } = method.proto;
  const ignoreUnknownFields = flags.allowUnknownFields === true;
  const form = { input: method.input, registry, ignoreUnknownFields };
  const requests = await requestsOf(await dataText(flags), form, clientStreaming);
  const { schedule, total, durationMs } = plan;
  const expectedMs =
    Number.isFinite(total) && schedule !== undefined ? schedule.timeOf(total - 1) : durationMs;
  const { skipFirst: skip, connections, timeout: timeoutMs } = flags;
  const recording = new Recording({
    open: schedule !== undefined,
    expectedMs,
    skip,
    rows: flags.csv !== undefined,
  });
  const sent: Sent = { bytes: 0, messages: 0, answers: 0 };
  const calls = target.calls(serviceOf(method, sizeType));
  const load = new LoadRun(
    plan,
    realClock,
    callerOf(calls, requests, flags.metadata, clientStreaming, sent),
    recording,
  );
  let stopped = false;
  const stop = (): void => {
    stopped = true;
    load.stop();
  };
  process.once('SIGINT', stop);
  const failed = (): number => recording.failures.reduce((sum, { count }) => sum + count, 0);
  const endProgress = flags.progress
    ? showProgress(process.stderr, () => ({
        share: Number.isFinite(expectedMs) ? load.elapsedMs / expectedMs : load.begun / total,
        calls: load.begun,
        elapsedMs: load.elapsedMs,
        failed: failed(),
      }))
    : () => undefined;
  const startedAt = new Date();
  const before = target.stats();
  try {
    const end = await load.run();
    const travelled = travelledIn(before, target.stats(), sent, serverStreaming);
    const result = resultOf({
      target: { address, method: `${method.parent.typeName}/${method.name}`, ...target.transport },
      load: {
        loop: schedule === undefined ? 'closed' : 'open',
        concurrency: plan.concurrency,
        connections,
        ...(Number.isFinite(total) ? { total } : {}),
        ...(Number.isFinite(durationMs) ? { durationMs } : {}),
        skipFirst: skip,
        timeoutMs,
        ...(schedule === undefined ? {} : { schedule: scheduleOf(schedule.rates) }),
      },
      startedAt,
      stopped,
      end,
      recording,
      requestBytes: sent.bytes,
      travelled,
    });
    return { result, recording };
  } finally {
    endProgress();
    process.removeListener('SIGINT', stop);
  }
}
