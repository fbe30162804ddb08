/**
 * The status and text of calls that handlers do not answer: refusals of requests, and errors of handlers that
 * were aborted. This file is used for unary calls, streams, calls that a client serves, and gRPC servers.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';

/**
 * The reason why a request is not run. It is not an Error, because a server may make many refusals and their
 * stacks are not needed.
 */
export interface Refusal {
  readonly status: StatusCode;
  readonly text: string;
}

const refusal = (status: StatusCode, path: string, why: string): Refusal => ({
  status,
  text: `${path}: ${why}`,
});

/** Returns the refusal when the server or the connection is shutting down. */
export const leaving = (path: string, why: string): Refusal => refusal(Status.UNAVAILABLE, path, why);
/** Returns the refusal when a limit is exhausted. `limit` names the limit and its option. */
export const exhausted = (path: string, limit: string): Refusal =>
  refusal(Status.RESOURCE_EXHAUSTED, path, limit);
export const startsLate = (path: string): Refusal =>
  refusal(Status.DEADLINE_EXCEEDED, path, 'the deadline passed before the handler started');
export const malformedMetadata = (path: string, why: string): Refusal =>
  refusal(Status.INTERNAL, path, `malformed metadata: ${why}`);
export const undecodable = (path: string, cause: unknown): Refusal =>
  refusal(Status.INTERNAL, path, undecodableRequest(cause));
/** Returns the refusal of an unknown method. `missing` is the text that the handler table returned. */
export const unknownMethod = (missing: string): Refusal => ({ status: Status.UNIMPLEMENTED, text: missing });
/** Returns the refusal of parts of a stream that break the protocol. */
export const broken = (path: string, rule: string): Refusal => refusal(Status.INTERNAL, path, rule);

/** Returns the text for a request that cannot be decoded. The text follows the path of the method. */
export const undecodableRequest = (cause: unknown): string =>
  `the request cannot be decoded: ${textOf(cause)}`;

/** Returns the text for the caller when a handler has failed with an error that is not an RpcError. */
export const handlerFailed = (path: string): string => `${path}: the handler failed`;
/**
 * Returns the text when a handler has returned a value that is not a response of its method. The text does
 * not contain the value, which may be confidential.
 */
export const unencodable = (path: string): string =>
  `${path}: the response cannot be encoded; the server's log may say why`;
/** Returns the text when the handler has not run because `authorize` has failed. */
export const authorizeFailed = (path: string): string =>
  `${path}: authorize failed; the server's log may say why`;

export const deadlinePassed = (path: string): RpcError =>
  new RpcError(Status.DEADLINE_EXCEEDED, `${path}: the deadline passed`);

/** Returns the error when the server's own time limit has passed. */
export const limitPassed = (path: string): RpcError =>
  new RpcError(
    Status.DEADLINE_EXCEEDED,
    `${path}: the time limit of the server passed (its options defaultTimeoutMs and timeoutMaxMs)`,
  );

/**
 * Returns the error of a call that the client has cancelled. `status` is the status that the client sent with
 * the cancellation.
 */
export const givenUp = (path: string, status: number): RpcError =>
  status === Status.DEADLINE_EXCEEDED
    ? deadlinePassed(path)
    : new RpcError(Status.CANCELLED, `${path}: cancelled by the client`);

export const connectionLost = (path: string, reason: string): RpcError =>
  new RpcError(Status.CANCELLED, `${path}: the connection was lost: ${reason}`);
