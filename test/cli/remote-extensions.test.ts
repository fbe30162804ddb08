/**
 * Tests extensions that no import reaches: which of them `rdma-rpc call` requests from a server's reflection
 * service, and how long it waits for them.
 */

import { type Channel, createInProcessChannel } from 'rdma-rpc';
import { expect, onTestFinished, test } from 'vitest';
import { create, type FileDescriptorProto, FileDescriptorProtoSchema, toBinary } from '#protobuf';
import { withExtensions } from '../../cli/server/schema/remote-extensions.ts';
import { channelReflection } from '../../cli/server/schema/remote-schema.ts';
import {
  ServerReflectionDefinition,
  type ServerReflectionResponseInit,
} from '../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts';

type Answer = NonNullable<ServerReflectionResponseInit['messageResponse']>;
interface Server {
  numbers(message: string): readonly number[] | undefined;
  file(message: string, number: number): FileDescriptorProto;
}

function channelTo({ numbers, file }: Server, asked: string[] = []): Channel {
  const answer = (message: string, number?: number): Answer => {
    asked.push(number === undefined ? message : `${message} ${number}`);
    if (number !== undefined) {
      const bytes = toBinary(FileDescriptorProtoSchema, file(message, number));
      return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: [bytes] } };
    }
    const extensionNumber = numbers(message);
    return extensionNumber === undefined
      ? { case: 'errorResponse', value: { errorCode: 5, errorMessage: 'no such message' } }
      : { case: 'allExtensionNumbersResponse', value: { extensionNumber } };
  };
  const channel = createInProcessChannel((server) =>
    server.add(ServerReflectionDefinition, {
      async *serverReflectionInfo(requests) {
        for await (const { messageRequest: each } of requests) {
          if (each?.case === 'allExtensionNumbersOfType') yield { messageResponse: answer(each.value) };
          else if (each?.case === 'fileContainingExtension')
            yield { messageResponse: answer(each.value.containingType, each.value.extensionNumber) };
        }
      },
    }),
  );
  onTestFinished(() => channel.close());
  return channel;
}

/** Returns a file `name` with an extendable message `name`, and an extension of another message. */
const fileWith = (name: string, extendee?: string, number?: number): FileDescriptorProto =>
  create(FileDescriptorProtoSchema, {
    name: `${name}.proto`,
    messageType: [{ name, extensionRange: [{ start: 1, end: 1000 }] }],
    extension:
      extendee === undefined ? [] : [{ name: `in${name}`, extendee: `.${extendee}`, number: number ?? 0 }],
  });
const namesOf = (files: readonly FileDescriptorProto[]) => files.map(({ name }) => name);

test('it requests files with extensions, and with extensions of the messages in those files', async () => {
  const asked: string[] = [];
  const channel = channelTo(
    {
      numbers: (message) => (message === 'A' ? [7, 8] : message === 'B' ? [9] : []),
      file: (message, number) => fileWith(message === 'A' ? 'B' : 'C', message, number),
    },
    asked,
  );
  const files = await withExtensions(channelReflection(channel), [fileWith('A', 'A', 8)]);
  expect(namesOf(files)).toEqual(['A.proto', 'B.proto', 'C.proto']);
  // Number 8 of A is already known.
  expect(asked).toEqual(['A', 'A 7', 'B', 'B 9', 'C']);
});

test('it requests nothing for messages without extension ranges', async () => {
  const asked: string[] = [];
  const channel = channelTo({ numbers: () => [], file: () => create(FileDescriptorProtoSchema) }, asked);
  const plain = create(FileDescriptorProtoSchema, { name: 'p.proto', messageType: [{ name: 'P' }] });
  const options = { ...fileWith('FieldOptions'), package: 'google.protobuf' };
  expect(await withExtensions(channelReflection(channel), [plain, options])).toEqual([plain, options]);
  expect(asked).toEqual([]);
});

test('it waits only briefly for a server that does not answer', async () => {
  const channel = channelTo({ numbers: () => undefined, file: () => create(FileDescriptorProtoSchema) });
  expect(namesOf(await withExtensions(channelReflection(channel), [fileWith('A')]))).toEqual(['A.proto']);
});

test('it stops reading from a server that answers without end', async () => {
  let made = 0;
  const channel = channelTo({
    numbers: () => [1],
    file: (message, number) => fileWith(`N${++made}`, message, number),
  });
  await expect(withExtensions(channelReflection(channel), [fileWith('A')])).rejects.toThrow(
    /more than 1000 questions/,
  );
});
