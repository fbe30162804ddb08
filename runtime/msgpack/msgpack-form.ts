/**
 * Methods of a .proto whose messages are encoded as MessagePack (`option (rdma_rpc.preferred_codec) =
 * MSGPACK`). They have the same types as other methods, and the same encoding as a service without a schema.
 * Generated code calls it when its module is loaded.
 */
import { messageType } from '../codec/message.ts';
import type { MessageType, MethodForm } from '../codec/types.ts';
import { conform } from './conform.ts';
import { msgpackType } from './msgpack-type.ts';

/**
 * Returns a message type that encodes the TypeScript object as MessagePack, by property names and without
 * fields that have their default value.
 */
function typed<T, Init>(type: MessageType<T, Init>): MessageType<T, Init> {
  const { typeName, create, fields } = type;
  const plain = msgpackType<object>(typeName);
  const checked = (value: unknown, origin: 'own' | 'peer') =>
    conform(type as MessageType<object>, value, origin);
  return messageType<T, Init>({
    typeName,
    create,
    fields,
    bound: (message, writer) => plain.bound(checked(message, 'own'), writer),
    encodeTo: (message, writer, at, limit) => plain.encodeTo(checked(message, 'own'), writer, at, limit),
    decodeFrom: (source, at, end) => create(checked(plain.decodeFrom(source, at, end), 'peer') as Init),
  });
}

/** Returns the MessagePack form of a method. `id` is the method id of the path followed by `+msgpack`. */
export function msgpackForm<Req, ReqInit, Res, ResInit>(
  id: number,
  input: MessageType<Req, ReqInit>,
  output: MessageType<Res, ResInit>,
): MethodForm<Req, ReqInit, Res, ResInit> {
  return { id, input: typed(input), output: typed(output) };
}
