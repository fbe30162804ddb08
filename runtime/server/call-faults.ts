/**
 * What a server says of calls that its handlers do not answer: requests that it does not run, and ends that
 * handlers are told of. For unary calls, streams, calls that a client serves, and servers of gRPC.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';

/** Why a request is not run. No error: many may come, and nobody looks at where they were refused. */
export interface Refusal {
  readonly status: StatusCode;
  readonly text: string;
}

const refusal = (status: StatusCode, path: string, why: string): Refusal => ({
  status,
  text: `${path}: ${why}`,
});

/** The server goes, or the connection does. */
export const leaving = (path: string, why: string): Refusal => refusal(Status.UNAVAILABLE, path, why);
/** `limit`: what is used up, with its option. */
export const exhausted = (path: string, limit: string): Refusal =>
  refusal(Status.RESOURCE_EXHAUSTED, path, limit);
export const startsLate = (path: string): Refusal =>
  refusal(Status.DEADLINE_EXCEEDED, path, 'the deadline passed before the handler started');
export const malformedMetadata = (path: string, why: string): Refusal =>
  refusal(Status.INTERNAL, path, `malformed metadata: ${why}`);
export const undecodable = (path: string, cause: unknown): Refusal =>
  refusal(Status.INTERNAL, path, undecodableRequest(cause));
/** `missing`: the words of a handler table. */
export const unknownMethod = (missing: string): Refusal => ({ status: Status.UNIMPLEMENTED, text: missing });
/** Parts that do not belong together. */
export const broken = (path: string, rule: string): Refusal => refusal(Status.INTERNAL, path, rule);

/** Of any request of a call, behind its path. */
export const undecodableRequest = (cause: unknown): string =>
  `the request cannot be decoded: ${textOf(cause)}`;

/** What a caller learns of an error that is no RpcError. */
export const handlerFailed = (path: string): string => `${path}: the handler failed`;
/**
 * The same where a handler has returned what its method does not answer with. The values may be nobody's
 * business but the server's.
 */
export const unencodable = (path: string): string =>
  `${path}: the response cannot be encoded; the server's log may say why`;
/** The same where the handler has not run, as the server could not find out whether it may. */
export const authorizeFailed = (path: string): string =>
  `${path}: authorize failed; the server's log may say why`;

export const deadlinePassed = (path: string): RpcError =>
  new RpcError(Status.DEADLINE_EXCEEDED, `${path}: the deadline passed`);

/** The server's own limit has passed. */
export const limitPassed = (path: string): RpcError =>
  new RpcError(
    Status.DEADLINE_EXCEEDED,
    `${path}: the time limit of the server passed (its options defaultTimeoutMs and timeoutMaxMs)`,
  );

/** `status`: what the client has cancelled with. */
export const givenUp = (path: string, status: number): RpcError =>
  status === Status.DEADLINE_EXCEEDED
    ? deadlinePassed(path)
    : new RpcError(Status.CANCELLED, `${path}: cancelled by the client`);

export const connectionLost = (path: string, reason: string): RpcError =>
  new RpcError(Status.CANCELLED, `${path}: the connection was lost: ${reason}`);
