/**
 * Messages that are already encoded, or not yet decoded, as MessageTypes. The runtime passes their bytes
 * through. `rdma-rpc call` and `rdma-rpc bench` use this file.
 */
import type { DescMethod } from '#protobuf';
import { noRoom } from '../../runtime/codec/memory/writer.ts';
import { messageType } from '../../runtime/codec/message.ts';
import { methodId } from '../../runtime/codec/service/method-id.ts';
import type { MessageType, MethodDefinition, ServiceDefinition } from '../../runtime/codec/types.ts';

export function rawType(typeName: string): MessageType<Uint8Array, Uint8Array> {
  return messageType<Uint8Array, Uint8Array>({
    typeName,
    create: (bytes = new Uint8Array(0)) => bytes,
    bound: (bytes) => bytes.byteLength,
    encodeTo: (bytes, writer, at, limit = writer.bytes.length) => {
      if (at + bytes.byteLength > limit) return noRoom(writer, at);
      writer.bytes.set(bytes, at);
      return at + bytes.byteLength;
    },
    decodeFrom: (source, at, end) => {
      // Make a copy, because the memory is reused.
      const bytes = source.slice(at, end);
      source.cross(at, end);
      return bytes;
    },
    fields: () => {
      throw new TypeError(`${typeName}: this type has bytes only, without a list of fields`);
    },
  });
}

interface Size {
  readonly byteLength: number;
}

/** Returns a type for responses when only their length is needed. */
export function sizeType(typeName: string): MessageType<Size, Size> {
  const { fields } = rawType(typeName);
  return messageType<Size, Size>({
    typeName,
    create: () => ({ byteLength: 0 }),
    bound: () => 0,
    encodeTo: (_, __, at) => at,
    decodeFrom: (source, at, end) => {
      source.cross(at, end);
      return { byteLength: end - at };
    },
    fields,
  });
}

/**
 * Returns a service with only this method, named `call`. Its requests are already encoded messages, and its
 * responses are the results of `output`.
 */
export function serviceOf(method: DescMethod, output: typeof rawType | typeof sizeType): ServiceDefinition {
  const { clientStreaming, serverStreaming } = method.proto;
  const fullName = `${method.parent.typeName}/${method.name}`;
  const call: MethodDefinition = {
    name: method.name,
    fullName,
    id: methodId(fullName),
    input: rawType(method.input.typeName) as MessageType<unknown, unknown>,
    requestStream: clientStreaming,
    output: output(method.output.typeName) as MessageType<unknown, unknown>,
    responseStream: serverStreaming,
    options: {},
  };
  return { name: method.parent.name, fullName: method.parent.typeName, methods: { call } };
}
