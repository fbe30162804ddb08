/** What a call says beside its messages: header, trailer, and the details of an error. On stderr, so that stdout has nothing but messages. Used by `rdma-rpc call`. */
import { Buffer } from 'node:buffer';
import pc from '#picocolors';
import { CodecError } from '../../runtime/codec/error.ts';
import { toJsonString } from '../../runtime/codec/json/index.ts';
import { UnknownMember } from '../../runtime/codec/json/read.ts';
import { createRegistry, type Registry } from '../../runtime/codec/wkt/any.ts';
import type { Metadata } from '../../runtime/core/metadata.ts';
import type { RpcError } from '../../runtime/core/rpc-error.ts';
import type { ErrorDetail } from '../../runtime/core/status-details.ts';
import * as standardDetails from '../../runtime/details/index.ts';
import { printable } from './connection.ts';
import { suggestionOrList } from './suggest.ts';

/** `key: value`, a line each; bytes as base64, as HTTP has them. */
export function showMetadata(what: 'header' | 'trailer', metadata: Metadata): void {
  for (const [key, value] of metadata) {
    const text = typeof value === 'string' ? value : Buffer.from(value).toString('base64');
    console.error(pc.dim(printable(`${what} ${key}: ${text}`)));
  }
}

const standard = createRegistry(standardDetails);

/** As JSON where its type is known, to the server or as one of google.rpc; else its bytes. */
function detailText({ type, value }: ErrorDetail, registry: Registry | undefined): string {
  const known = registry?.find(type) ?? standard.find(type);
  if (known !== undefined) {
    try {
      return toJsonString(known, known.decode(value), registry === undefined ? {} : { registry });
    } catch (error) {
      // Whoever sent it has another idea of the type: its bytes are better than none of the others.
      if (!(error instanceof CodecError)) throw error;
    }
  }
  return `${value.byteLength} bytes: ${Buffer.from(value).toString('base64')}`;
}

/** An error of the call, its details behind it. `trailerShown`: its metadata is on the terminal already. */
export function showError(error: RpcError, registry: Registry | undefined, trailerShown: boolean): void {
  console.error(pc.red(`error: ${printable(error.message)}`));
  for (const detail of error.details)
    console.error(printable(`  ${detail.type} ${detailText(detail, registry)}`));
  if (!trailerShown) showMetadata('trailer', error.metadata);
}

/** What is wrong with the request, as the command line can have it: the library's hints are for programs. */
export function requestProblem(error: unknown): string | undefined {
  if (!(error instanceof UnknownMember)) return undefined;
  const names = error.fields.map(({ jsonName }) => jsonName);
  return `${error.path}: there is no field ${JSON.stringify(error.member)}${suggestionOrList(error.member, names)}`;
}
