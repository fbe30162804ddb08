/**
 * `rdma-rpc/reflection`: the standard reflection service, grpc.reflection.v1. Tools use it to list a server's
 * services. It answers from the descriptors in generated code. Every client that can connect can query it, so
 * a server has it only when the application adds it.
 */
import type { FileDescriptor } from '../codec/file-descriptor.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { Status } from '../core/errors/status.ts';
import type { Server } from '../server/server-type.ts';
import { DescriptorIndex } from './descriptor-index.ts';
import {
  ServerReflectionDefinition,
  type ServerReflectionRequest,
  type ServerReflectionResponseInit,
} from './gen/grpc/reflection/v1/reflection.rdma.ts';

export {
  type ServerReflectionClient,
  ServerReflectionDefinition,
} from './gen/grpc/reflection/v1/reflection.rdma.ts';

type Answer = NonNullable<ServerReflectionResponseInit['messageResponse']>;

function notFound(what: string): Answer {
  return {
    case: 'errorResponse',
    value: { errorCode: Status.NOT_FOUND, errorMessage: `unknown ${what}` },
  };
}

class Reflection {
  readonly #services: () => readonly ServiceDefinition[];
  #index: DescriptorIndex | undefined;
  /** Number of services from which the index was built. */
  #indexed = 0;

  constructor(services: () => readonly ServiceDefinition[]) {
    this.#services = services;
  }

  async *serverReflectionInfo(
    requests: AsyncIterable<ServerReflectionRequest>,
  ): AsyncGenerator<ServerReflectionResponseInit> {
    const sent = new Set<string>();
    for await (const request of requests) yield this.answer(request, sent);
  }

  /**
   * Returns the answer to a request. `sent` has the names of the files that the client has already received
   * on this stream. These files are not sent again as imports.
   */
  answer(request: ServerReflectionRequest, sent: Set<string>): ServerReflectionResponseInit {
    return {
      validHost: request.host,
      originalRequest: request,
      messageResponse: this.#answer(request, sent),
    };
  }

  #answer({ messageRequest: asked }: ServerReflectionRequest, sent: Set<string>): Answer {
    const index = this.#descriptors();
    switch (asked?.case) {
      case 'listServices':
        return {
          case: 'listServicesResponse',
          value: { service: this.#services().map(({ fullName }) => ({ name: fullName })) },
        };
      case 'fileByFilename':
        return this.#files(index.file(asked.value), `file ${asked.value}`, sent);
      case 'fileContainingSymbol':
        return this.#files(index.declaring(asked.value), `symbol ${asked.value}`, sent);
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = asked.value;
        const file = index.extension(containingType, extensionNumber);
        return this.#files(file, `extension ${extensionNumber} of ${containingType}`, sent);
      }
      case 'allExtensionNumbersOfType': {
        const extensionNumber = index.extensionNumbers(asked.value);
        if (extensionNumber === undefined) return notFound(`message ${asked.value}`);
        return {
          case: 'allExtensionNumbersResponse',
          value: { baseTypeName: asked.value, extensionNumber },
        };
      }
      default:
        return {
          case: 'errorResponse',
          value: {
            errorCode: Status.INVALID_ARGUMENT,
            errorMessage: 'the request asks for nothing that is known here',
          },
        };
    }
  }

  /** Returns the file and the imports of the file that the client has not received. */
  #files(file: FileDescriptor | undefined, what: string, sent: Set<string>): Answer {
    if (file === undefined) return notFound(what);
    const fileDescriptorProto = [file.bytes];
    sent.add(file.name);
    const addImports = (of: FileDescriptor): void => {
      for (const imported of of.dependencies) {
        if (sent.has(imported.name)) continue;
        sent.add(imported.name);
        fileDescriptorProto.push(imported.bytes);
        addImports(imported);
      }
    };
    addImports(file);
    return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
  }

  #descriptors(): DescriptorIndex {
    const services = this.#services();
    if (this.#index === undefined || this.#indexed !== services.length) {
      this.#index = new DescriptorIndex(services.flatMap(({ file }) => file ?? []));
      this.#indexed = services.length;
    }
    return this.#index;
  }
}

/**
 * Adds the reflection service to a server. It reports all services of the server, including services that are
 * added later. Throws when the reflection service has already been added.
 */
export function addReflection(server: Server): void {
  server.add(ServerReflectionDefinition, new Reflection(() => server.services) as object);
}
