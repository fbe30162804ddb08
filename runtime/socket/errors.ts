/**
 * The errors of sockets. They are the errors of `node:net`, with Node's codes. Their cause is the error of
 * the stream behind the socket. Sockets and servers make this object on the JS thread.
 */
import { constants } from 'node:os';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';

/** Makes an error of a system call, as `node:net` does. */
export interface SystemError extends Error {
  code: string;
  errno: number;
  syscall: string;
  address?: string;
  port?: number;
}

const causesMax = 16;

function systemError(syscall: string, code: string, where: string, cause: unknown): SystemError {
  const known = (constants.errno as Readonly<Record<string, number>>)[code];
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  const error = new Error(`${syscall} ${code}${where}${why}`, cause === undefined ? undefined : { cause });
  return Object.assign(error, { code, errno: known === undefined ? -1 : -known, syscall });
}

/** Returns the code of the system error among the causes of `error`. */
function systemCode(error: unknown): string | undefined {
  let each = error;
  for (let i = 0; i < causesMax && each instanceof Error; i++) {
    const { code } = each as { code?: unknown };
    if (typeof code === 'string' && /^E[A-Z0-9_]+$/.test(code) && !code.startsWith('ERR_')) return code;
    each = each instanceof AggregateError ? each.errors[0] : each.cause;
  }
  return undefined;
}

/** The target of a connection attempt, in the form that `node:net` uses in errors. */
export interface Place {
  readonly address: string;
  readonly port: number | undefined;
}

/** Returns the error for a connection that could not be made. */
export function connectError(place: Place, cause: unknown, code?: string): SystemError {
  const { address, port } = place;
  const known = code ?? systemCode(cause) ?? codeOf(cause);
  const error = systemError(
    'connect',
    known,
    ` ${port === undefined ? address : `${address}:${port}`}`,
    cause,
  );
  error.address = address;
  if (port !== undefined) error.port = port;
  return error;
}

function codeOf(cause: unknown): string {
  if (!(cause instanceof RpcError)) return 'ECONNREFUSED';
  switch (cause.code) {
    case Status.DEADLINE_EXCEEDED:
      return 'ETIMEDOUT';
    case Status.PERMISSION_DENIED:
    case Status.UNAUTHENTICATED:
      return 'EACCES';
    default:
      return /timed? ?out|no answer within/i.test(cause.message) ? 'ETIMEDOUT' : 'ECONNREFUSED';
  }
}

/**
 * Returns the error for a connection that was lost while the socket read. `cause` is undefined for a reset.
 */
export function readError(cause: unknown): SystemError {
  return systemError('read', 'ECONNRESET', '', cause);
}

export function writeError(code: string, cause: unknown): SystemError {
  return systemError('write', code, '', cause);
}

export function listenError(address: string, cause: unknown): SystemError {
  return systemError('listen', systemCode(cause) ?? 'EINVAL', ` ${address}`, cause);
}

/** Makes an error with a code of Node itself, such as ERR_SOCKET_CLOSED. */
export function nodeError(code: string, message: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code });
}
