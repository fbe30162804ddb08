/**
 * Tests the standard reflection service: its descriptors equal those that protoc would create from the
 * sources, and no request can confuse it.
 */
import { type Channel, createChannel, createClient, createServer, type Server } from 'rdma-rpc';
import { addHealth } from 'rdma-rpc/health';
import { addReflection, ServerReflectionDefinition } from 'rdma-rpc/reflection';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type {
  ServerReflectionRequestInit,
  ServerReflectionResponse,
} from '../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts';
import { FileNames } from '../../runtime/services/gen/symbols.rdma.ts';
import { file_well_known_proto } from '../codec/gen/well_known.rdma.ts';
import { EchoDefinition, file_echo_proto } from '../runtime/gen/echo.rdma.ts';

let server: Server;
let channel: Channel;
beforeEach(async () => {
  server = createServer().add(EchoDefinition, {});
  addReflection(server);
  channel = createChannel(await server.listen('127.0.0.1:0'));
});
afterEach(async () => {
  await channel.close();
  await server.shutdown({ graceMs: 0 });
});

type Asked = NonNullable<ServerReflectionRequestInit['messageRequest']>;

/** Resolves to the answers to the requests of one stream, in order. */
async function ask(...asked: (Asked | undefined)[]): Promise<ServerReflectionResponse[]> {
  const answers: ServerReflectionResponse[] = [];
  const requests = asked.map((messageRequest) => ({ host: 'me', messageRequest }));
  for await (const answer of createClient(ServerReflectionDefinition, channel).serverReflectionInfo(
    requests,
  )) {
    answers.push(answer);
  }
  return answers;
}
function filesOf(answer: ServerReflectionResponse | undefined): Uint8Array[] {
  const response = answer?.messageResponse;
  if (response?.case !== 'fileDescriptorResponse') throw new Error(JSON.stringify(response));
  return response.value.fileDescriptorProto;
}

describe('a request for', () => {
  test('the services returns all of them, including services that were added later', async () => {
    const names = async (): Promise<string[]> => {
      const [answer] = await ask({ case: 'listServices', value: '' });
      const response = answer?.messageResponse;
      if (response?.case !== 'listServicesResponse') throw new Error(JSON.stringify(response));
      return response.value.service.map(({ name }) => name);
    };
    expect(await names()).toEqual(['test.echo.Echo', 'grpc.reflection.v1.ServerReflection']);
    addHealth(server);
    expect(await names()).toContain('grpc.health.v1.Health');
    const [found] = await ask({ case: 'fileContainingSymbol', value: 'grpc.health.v1.Health.Watch' });
    expect(filesOf(found)).toHaveLength(1);
  });

  test.each<[string, Asked]>([
    ['a file', { case: 'fileByFilename', value: 'echo.proto' }],
    ['a service', { case: 'fileContainingSymbol', value: 'test.echo.Echo' }],
    ['a method', { case: 'fileContainingSymbol', value: 'test.echo.Echo.Fetch' }],
    ['a message', { case: 'fileContainingSymbol', value: 'test.echo.EchoMessage' }],
    ['a field', { case: 'fileContainingSymbol', value: 'test.echo.EchoMessage.payload' }],
    ['a name with a leading dot', { case: 'fileContainingSymbol', value: '.test.echo.Echo' }],
  ])('%s: the file, byte for byte', async (_, asked) => {
    const [answer] = await ask(asked);
    expect(filesOf(answer)).toEqual([file_echo_proto.bytes]);
    expect(answer).toMatchObject({ validHost: 'me', originalRequest: { messageRequest: asked } });
  });

  test('a file returns it with its imports, and each only once per stream', async () => {
    const definition = { name: 'Other', fullName: 'other.Other', methods: {}, file: file_well_known_proto };
    server.add(definition, {});
    const asked: Asked = { case: 'fileByFilename', value: file_well_known_proto.name };
    const [first, second] = (await ask(asked, asked)).map(filesOf);
    expect(first?.[0]).toEqual(file_well_known_proto.bytes);
    expect(first).toHaveLength(1 + file_well_known_proto.dependencies.length);
    expect(second).toEqual([file_well_known_proto.bytes]);
    const packages = first?.map((bytes) => FileNames.decode(bytes).package) ?? [];
    expect(new Set(packages.slice(1))).toEqual(new Set(['google.protobuf']));
  });

  test.each<[string, Asked | undefined, number, RegExp]>([
    [
      'a file that is not there',
      { case: 'fileByFilename', value: '../etc/passwd' },
      5,
      /unknown file \.\.\/etc\/passwd/,
    ],
    [
      'a symbol that is not there',
      { case: 'fileContainingSymbol', value: 'constructor' },
      5,
      /unknown symbol constructor/,
    ],
    [
      'an extension that is not there',
      {
        case: 'fileContainingExtension',
        value: { containingType: 'test.echo.EchoMessage', extensionNumber: 5 },
      },
      5,
      /unknown extension 5 of test.echo.EchoMessage/,
    ],
    [
      'the extensions of no message',
      { case: 'allExtensionNumbersOfType', value: '__proto__' },
      5,
      /unknown message __proto__/,
    ],
    ['nothing', undefined, 3, /nothing that is known here/],
  ])('%s: an error in the answer, and the stream goes on', async (_, asked, errorCode, text) => {
    const [error, after] = await ask(asked, { case: 'fileContainingSymbol', value: 'test.echo.Echo' });
    expect(error?.messageResponse).toEqual({
      case: 'errorResponse',
      value: { errorCode, errorMessage: expect.stringMatching(text) },
    });
    expect(filesOf(after)).toHaveLength(1);
  });

  test('extension numbers of a message without extensions returns none', async () => {
    const [answer] = await ask({ case: 'allExtensionNumbersOfType', value: 'test.echo.EchoMessage' });
    expect(answer?.messageResponse).toEqual({
      case: 'allExtensionNumbersResponse',
      value: { baseTypeName: 'test.echo.EchoMessage', extensionNumber: [] },
    });
  });
});

test('a service whose definition was made by hand is listed, and its names are not found', async () => {
  server.add({ name: 'Hand', fullName: 'made.by.Hand', methods: {} }, {});
  const [list, symbol] = await ask(
    { case: 'listServices', value: '*' },
    { case: 'fileContainingSymbol', value: 'made.by.Hand' },
  );
  expect(JSON.stringify(list?.messageResponse)).toContain('made.by.Hand');
  expect(symbol?.messageResponse?.case).toBe('errorResponse');
});
