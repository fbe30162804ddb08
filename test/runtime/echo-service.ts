/**
 * Implements the service that the runtime's tests call. `behave` acts as its text says, and records its
 * requests for the test.
 */
import { type HandlerContext, type Handlers, leaseOf, RpcError, Status } from 'rdma-rpc';
import type { EchoDefinition, EchoMessage, EchoMessageInit } from './gen/echo.rdma.ts';

export interface EchoLog {
  /** The number of handlers that began. */
  started: number;
  /** The codes of signals that aborted in `hang`. */
  aborted: number[];
  /**
   * Requests of `check` whose bytes were different or were written after the end of the call (test/slow).
   */
  torn?: number;
}

type Behaviour = (
  request: EchoMessage,
  context: HandlerContext,
  log: EchoLog,
) => EchoMessageInit | Promise<EchoMessageInit>;

const behaviours: Readonly<Record<string, Behaviour>> = {
  hang: (_, context, log) =>
    new Promise((_resolve, reject) =>
      context.signal.addEventListener('abort', () => {
        log.aborted.push((context.signal.reason as RpcError).code);
        // Waits, because an answer could otherwise arrive before the client's deadline has passed.
        reject(context.signal.reason);
      }),
    ),
  /** Blocks the thread for `number` ms, as a garbage collection or a JSON.parse does. */
  busy: ({ number }) => {
    for (const end = performance.now() + number; performance.now() < end; );
    return { number };
  },
  check: async (request, _, log) => {
    const [first = 0] = request.payload;
    if (first === 0xa5 || request.payload.some((byte) => byte !== first)) log.torn = (log.torn ?? 0) + 1;
    const { length } = request.payload;
    leaseOf(request)?.release();
    await new Promise((resolve) => setTimeout(resolve, request.number));
    return { payload: new Uint8Array(length).fill(first) };
  },
  throw: () => {
    throw new Error('a secret');
  },
  reject: () => Promise.reject(new Error('a secret')),
  'not found': () => {
    throw new RpcError(Status.NOT_FOUND, 'no such thing');
  },
  metadata: (_, context) => {
    for (const [key, value] of context.metadata) context.trailer.append(key, value);
    return { number: context.metadata.size };
  },
  'time left': (_, context) => ({ number: Math.ceil(context.timeoutMs() ?? 0) }),
  peer: (_, context) => ({ text: String(context.peer) }),
  nothing: () => undefined as unknown as EchoMessageInit,
  release: (request) => {
    const number = request.payload.reduce((sum, byte) => (sum + byte) % 65_536, 0);
    const leased = leaseOf(request);
    leased?.release();
    return { number, text: leased === undefined ? 'owned' : 'leased' };
  },
};

export function echoHandlers(log: EchoLog): Partial<Handlers<typeof EchoDefinition>> {
  return {
    echo: (request) => {
      ++log.started;
      return request;
    },
    behave: (request, context) => {
      ++log.started;
      const behaviour = behaviours[request.text];
      if (behaviour === undefined)
        throw new RpcError(Status.INVALID_ARGUMENT, `no behaviour ${request.text}`);
      return behaviour(request, context, log);
    },
    fetch: async (request) => {
      ++log.started;
      return { payload: new Uint8Array(request.number).fill(request.number & 0xff) };
    },
  };
}
