/**
 * Converts metadata and errors of calls over grpc-js to the types of this package. Also converts metadata in
 * the other direction. client-call.ts uses this file.
 */
import { Metadata as GrpcMetadata, type ServiceError } from '@grpc/grpc-js';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { errorCode, Status } from '../../core/errors/status.ts';
import { takeDetails } from '../../core/errors/status-details.ts';
import { Metadata, type MetadataInit, receivedMetadata } from '../../core/metadata.ts';
import { printable } from './context.ts';

/** Matches the headers of HTTP/2 and of gRPC itself, which are not metadata of an application. */
const transport = /^(:|content-type$|date$|user-agent$|te$|grpc-(?!status-details-bin$))/;

/** Converts metadata to metadata of grpc-js. Throws a TypeError for text that gRPC cannot carry. */
export function toGrpc(path: string, init: MetadataInit | undefined, waitForReady: boolean): GrpcMetadata {
  const result = new GrpcMetadata({ waitForReady });
  if (init === undefined) return result;
  for (const [key, value] of init instanceof Metadata ? init : new Metadata(init)) {
    if (typeof value !== 'string') {
      result.add(key, Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    } else if (printable.test(value)) result.add(key, value);
    else
      throw new TypeError(
        `${path}: metadata ${key}: gRPC carries printable ASCII; put other text under a -bin key`,
      );
  }
  return result;
}

/** Converts received metadata of grpc-js. Omits entries that are invalid in metadata of this package. */
export function fromGrpc(received: GrpcMetadata): Metadata {
  const keys = Object.keys(received.getMap()).filter((key) => !transport.test(key));
  return receivedMetadata(keys.flatMap((key) => received.get(key).map((value) => [key, value] as const)));
}

/**
 * Codes that grpc-js also generates itself. After an error with such a code, it is unknown whether a
 * handler has run.
 */
const ownCodes: ReadonlySet<number> = new Set([
  Status.CANCELLED,
  Status.UNKNOWN,
  Status.DEADLINE_EXCEEDED,
  Status.RESOURCE_EXHAUSTED,
  Status.INTERNAL,
  Status.UNAVAILABLE,
]);

export function errorOf(path: string, error: ServiceError): RpcError {
  const code = errorCode(error.code);
  const metadata = error.metadata === undefined ? new Metadata() : fromGrpc(error.metadata);
  const details = takeDetails(metadata);
  const own = ownCodes.has(code);
  const text = code === Status.DEADLINE_EXCEEDED ? `${path}: the deadline passed` : error.details;
  return new RpcError(code, text, {
    trailer: metadata,
    details,
    processed: own ? 'maybe' : 'yes',
    cause: error,
  });
}
