/**
 * Converts headers of connect-es to metadata and back, and errors of this package to errors of connect-es.
 * The transport uses this file.
 */
import { Buffer } from 'node:buffer';
import { Code, ConnectError, decodeBinaryHeader, encodeBinaryHeader } from '@connectrpc/connect';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Metadata } from '../../core/metadata.ts';

/**
 * Converts a header to metadata. Values under `-bin` are base64 in a header and bytes in metadata. Throws a
 * TypeError for values that metadata cannot contain.
 */
export function toMetadata(header: Headers): Metadata | undefined {
  const metadata = new Metadata();
  header.forEach((value, key) => {
    if (!key.endsWith('-bin')) metadata.append(key, value);
    else for (const part of value.split(',')) metadata.append(key, decodeBinaryHeader(part.trim()));
  });
  return metadata.size === 0 ? undefined : metadata;
}

/** Matches a text that consists only of characters that a header can contain. */
const carried = /^[^\0\r\n\u0100-\uffff]*$/;

/**
 * Returns a text in a form that a header can contain. Other characters are percent-encoded, as gRPC does with
 * error texts. Otherwise such a text would make the call fail. `decodeURIComponent` restores the text.
 */
function headerText(value: string): string {
  if (carried.test(value)) return value;
  let text = '';
  for (const byte of Buffer.from(value)) {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x25;
    text += plain ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`;
  }
  return text;
}

export function toHeaders(metadata: Metadata | undefined, headers: Headers = new Headers()): Headers {
  for (const [key, value] of metadata ?? [])
    headers.append(key, typeof value === 'string' ? headerText(value) : encodeBinaryHeader(value));
  return headers;
}

/**
 * Converts an error to a ConnectError. Both classes use gRPC's codes. Details keep their bytes, and
 * `error.findDetails(schema)` decodes them.
 */
export function toConnectError(error: unknown): ConnectError {
  if (!(error instanceof RpcError)) return ConnectError.from(error, Code.Internal);
  const { code, rawMessage, trailer: metadata, details } = error;
  const result = new ConnectError(rawMessage, code as number as Code, toHeaders(metadata), undefined, error);
  result.details = details.map(({ type, value }) => ({ type, value: new Uint8Array(value) }));
  return result;
}
