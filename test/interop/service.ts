/** The server of the interoperability cases, written against the public API alone. */
import { type HandlerContext, type HandlersOf, RpcError, Status } from 'rdma-rpc';
import type {
  EchoStatus,
  InteropDefinition,
  Payload,
  PayloadInit,
  SimpleRequest,
  SimpleResponseInit,
} from './gen/interop.rdma.ts';
import { isPattern, pattern } from './sizes.ts';

export const trailerKey = 'echo-trailing-bin';

/** What the handlers saw. */
export interface InteropLog {
  started: number;
  /** Handlers whose signal fired. */
  aborted: number;
}

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

/** Metadata comes back as it was sent. */
function echoMetadata({ metadata, trailer }: HandlerContext): void {
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

export function interopHandlers(log: InteropLog): Partial<HandlersOf<typeof InteropDefinition>> {
  const unary = ({ responseSize, payload }: SimpleRequest, context: HandlerContext): SimpleResponseInit => ({
    payload: answer(responseSize, payload?.seed ?? 0),
    peer: context.peer,
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
  };
}
