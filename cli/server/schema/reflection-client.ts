/**
 * Queries of grpc.reflection.v1. The schema of a server uses this file.
 */
import { type FileDescriptorProto, FileDescriptorProtoSchema, fromBinary } from '#protobuf';
import { RpcError } from '../../../runtime/core/errors/rpc-error.ts';
import { errorCode, Status } from '../../../runtime/core/errors/status.ts';
import type { Client } from '../../../runtime/core/types.ts';
import type {
  ServerReflectionDefinition,
  ServerReflectionRequestInit,
  ServerReflectionResponse,
} from '../../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts';

type Asked = NonNullable<ServerReflectionRequestInit['messageRequest']>;
type Answer = NonNullable<ServerReflectionResponse['messageResponse']>;
/** Values by the kind of response. */
type Values = { [A in Extract<Answer, { case: string }> as A['case']]: A['value'] };

/** A client of the service, over a channel of ours or over gRPC. */
export interface Reflection extends Pick<Client<typeof ServerReflectionDefinition>, 'serverReflectionInfo'> {
  /** The advice for a server without reflection. */
  readonly remedy: string;
}

async function ask<K extends keyof Values>(
  reflection: Reflection,
  messageRequest: Asked,
  wanted: K,
): Promise<Values[K]> {
  try {
    for await (const { messageResponse: answer } of reflection.serverReflectionInfo([{ messageRequest }])) {
      if (answer?.case === wanted) return answer.value as Values[K];
      if (answer?.case !== 'errorResponse') break;
      const { errorCode: code, errorMessage } = answer.value;
      throw new RpcError(errorCode(code), `the server says: ${errorMessage}`, { processed: 'yes' });
    }
  } catch (error) {
    if (!(error instanceof RpcError) || error.code !== Status.UNIMPLEMENTED) throw error;
    const text = `this server has no reflection: ${reflection.remedy}`;
    throw new RpcError(Status.UNIMPLEMENTED, text, { processed: 'no', cause: error });
  }
  throw new RpcError(Status.INTERNAL, 'the server gave no answer of the kind that was asked for');
}

/** Returns full names, sorted. */
export async function serviceNames(reflection: Reflection): Promise<string[]> {
  const { service } = await ask(reflection, { case: 'listServices', value: '' }, 'listServicesResponse');
  return service.map(({ name }) => name).sort();
}

function decoded(files: readonly Uint8Array[]): FileDescriptorProto[] {
  return files.map((bytes) => {
    try {
      return fromBinary(FileDescriptorProtoSchema, bytes);
    } catch (error) {
      throw new Error(`the server sent a descriptor that cannot be read: ${(error as Error).message}`);
    }
  });
}

/**
 * Returns the file that declares `symbol`, followed by its imports, or undefined when the server does not
 * have that name.
 */
export async function filesOf(
  reflection: Reflection,
  symbol: string,
): Promise<FileDescriptorProto[] | undefined> {
  const asked = { case: 'fileContainingSymbol', value: symbol } as const;
  try {
    return decoded((await ask(reflection, asked, 'fileDescriptorResponse')).fileDescriptorProto);
  } catch (error) {
    if (error instanceof RpcError && error.code === Status.NOT_FOUND) return undefined;
    throw error;
  }
}

/**
 * Returns the numbers of a message's extensions on the server; an empty list when the server does not support
 * the query.
 */
export async function extensionNumbers(reflection: Reflection, message: string): Promise<readonly number[]> {
  const asked = { case: 'allExtensionNumbersOfType', value: message } as const;
  try {
    return (await ask(reflection, asked, 'allExtensionNumbersResponse')).extensionNumber;
  } catch (error) {
    // Some servers do not support the query. A call without extensions is then better than no call.
    if (error instanceof RpcError && untold.has(error.code)) return [];
    throw error;
  }
}

const untold: ReadonlySet<number> = new Set([Status.NOT_FOUND, Status.UNIMPLEMENTED]);

/** Returns the file that declares an extension, followed by its imports. */
export async function fileOfExtension(
  reflection: Reflection,
  containingType: string,
  extensionNumber: number,
): Promise<FileDescriptorProto[]> {
  const asked = { case: 'fileContainingExtension', value: { containingType, extensionNumber } } as const;
  return decoded((await ask(reflection, asked, 'fileDescriptorResponse')).fileDescriptorProto);
}
