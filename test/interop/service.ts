/**
 * The server of the interoperability cases. It uses only the public API.
 */
import { type HandlerContext, type Handlers, leaseOf, RpcError, Status } from 'rdma-rpc';
import type {
  EchoStatus,
  InteropDefinition,
  OutputRequest,
  OutputResponseInit,
  Payload,
  PayloadInit,
  SimpleRequest,
  SimpleResponseInit,
} from './gen/interop.rdma.ts';
import { isPattern, pattern } from './sizes.ts';

export const headerKey = 'echo-initial';
export const trailerKey = 'echo-trailing-bin';

/** The requests that the handlers have seen. */
export interface InteropLog {
  started: number;
  /** Number of handlers whose signal fired. */
  aborted: number;
  /** Number of streaming handlers that have ended in any way. */
  left: number;
  /** Number of one-way requests that have arrived unchanged, and the sum of their body sizes. */
  notes: number;
  noteBytes: number;
}

export const emptyLog = (): InteropLog => ({ started: 0, aborted: 0, left: 0, notes: 0, noteBytes: 0 });

function answer(size: number, seed: number): PayloadInit {
  return { body: pattern(size, seed), seed };
}

function check(payload: Payload | undefined): void {
  if (payload !== undefined && !isPattern(payload.body, payload.seed)) {
    throw new RpcError(Status.DATA_LOSS, `a body of ${payload.body.byteLength} bytes arrived changed`);
  }
}

function fail(status: EchoStatus | undefined): void {
  if (status !== undefined && status.code !== 0)
    throw new RpcError(status.code as RpcError['code'], status.message);
}

/** Returns metadata as it was sent. */
function echoMetadata({ metadata, header, trailer }: HandlerContext): void {
  for (const value of metadata.getAll(headerKey)) header.append(headerKey, value);
  for (const value of metadata.getAll(trailerKey)) trailer.append(trailerKey, value);
}

function sleep(ms: number, { signal }: HandlerContext, log: InteropLog): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      ++log.aborted;
      clearTimeout(timer);
      reject(signal.reason as RpcError);
    });
  });
}

/** Yields the answers to one request of a stream. */
async function* outputs(
  request: OutputRequest,
  context: HandlerContext,
  log: InteropLog,
): AsyncGenerator<OutputResponseInit> {
  const seed = request.payload?.seed ?? 0;
  for (const { size, intervalUs } of request.responseParameters) {
    if (intervalUs !== 0) await sleep(intervalUs / 1000, context, log);
    yield { payload: answer(size, seed) };
  }
  fail(request.responseStatus);
}

export function interopHandlers(log: InteropLog): Partial<Handlers<typeof InteropDefinition>> {
  const unary = ({ responseSize, payload }: SimpleRequest, context: HandlerContext): SimpleResponseInit => ({
    payload: answer(responseSize, payload?.seed ?? 0),
    peer: String(context.peer),
  });
  return {
    emptyCall: () => ({}),
    unaryCall: (request, context) => {
      ++log.started;
      check(request.payload);
      echoMetadata(context);
      fail(request.responseStatus);
      if (request.sleepMs === 0) return unary(request, context);
      return sleep(request.sleepMs, context, log).then(() => unary(request, context));
    },
    noteCall: async (request, context) => {
      check(request.payload);
      ++log.notes;
      log.noteBytes += request.payload?.body.byteLength ?? 0;
      leaseOf(request)?.release();
      // The caller does not learn of this error.
      fail(request.responseStatus);
      if (request.sleepMs !== 0) await sleep(request.sleepMs, context, log);
    },
    async *streamingOutputCall(request, context) {
      ++log.started;
      try {
        echoMetadata(context);
        check(request.payload);
        yield* outputs(request, context, log);
      } finally {
        ++log.left;
      }
    },
    async streamingInputCall(requests, context) {
      ++log.started;
      try {
        echoMetadata(context);
        let bytes = 0;
        let messages = 0;
        for await (const request of requests) {
          check(request.payload);
          bytes += request.payload?.body.byteLength ?? 0;
          ++messages;
          leaseOf(request)?.release();
        }
        return { aggregatedPayloadSize: BigInt(bytes), messages };
      } finally {
        ++log.left;
      }
    },
    async *fullDuplexCall(requests, context) {
      ++log.started;
      try {
        echoMetadata(context);
        for await (const request of requests) {
          check(request.payload);
          leaseOf(request)?.release();
          yield* outputs(request, context, log);
        }
      } finally {
        ++log.left;
      }
    },
    async *halfDuplexCall(requests, context) {
      ++log.started;
      try {
        const kept: OutputRequest[] = [];
        for await (const request of requests) kept.push(request);
        for (const request of kept) yield* outputs(request, context, log);
      } finally {
        ++log.left;
      }
    },
  };
}
