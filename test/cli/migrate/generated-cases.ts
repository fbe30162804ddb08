/**
 * Code that uses enums, descriptors and types of other generators, and the converted code. protobuf-es leaves
 * out the prefix that all values of an enum share, ts-proto keeps it.
 */
import type { Case } from './bed.ts';

export const generatedCases: readonly Case[] = [
  {
    what: 'values of an enum of protobuf-es, and descriptors of services and messages',
    before: `import { Greeter, HelloReplySchema, Mood } from './gen/greeter_pb.js';

export const all = [Mood.GOOD, Mood.UNSPECIFIED];
export type Best = Mood.GOOD;
export const isGood = (mood: Mood): boolean => mood === Mood.GOOD;
export const names = [Greeter.typeName, Greeter.name, HelloReplySchema.typeName];
`,
    after: `import { GreeterDefinition, HelloReply, Mood } from './gen/greeter.rdma.js';

export const all = [Mood.MOOD_GOOD, Mood.MOOD_UNSPECIFIED];
export type Best = typeof Mood.MOOD_GOOD;
export const isGood = (mood: Mood): boolean => mood === Mood.MOOD_GOOD;
export const names = [GreeterDefinition.fullName, GreeterDefinition.name, HelloReply.typeName];
`,
  },
  {
    what: 'values and descriptors within code that is converted itself',
    before: `import { create, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { Greeter, HelloReplySchema, Mood } from './gen/greeter_pb.js';

export const reply = create(HelloReplySchema, { text: \`\${Mood.GOOD} \${Greeter.typeName}\` });
export const bytes = toBinary(HelloReplySchema, create(HelloReplySchema, { text: String(Mood.GOOD) }));
export const error = new ConnectError(String(Mood.GOOD), Code.NotFound);
`,
    after: `import { GreeterDefinition, HelloReply, Mood } from './gen/greeter.rdma.js';
import { RpcError, Status } from 'rdma-rpc';

export const reply = HelloReply.create({ text: \`\${Mood.MOOD_GOOD} \${GreeterDefinition.fullName}\` });
export const bytes = HelloReply.encode(HelloReply.create({ text: String(Mood.MOOD_GOOD) }));
export const error = new RpcError(Status.NOT_FOUND, String(Mood.MOOD_GOOD));
`,
  },
  {
    what: 'a callback of grpc-js whose parameters have types',
    before: `import { credentials, type ServiceError } from '@grpc/grpc-js';
import { GreeterClient, type HelloReply, Mood } from './old/greeter.ts';

const client = new GreeterClient('127.0.0.1:5000', credentials.createInsecure());
client.sayHello({ name: Mood[Mood.MOOD_GOOD] }, (error: ServiceError | null, reply: HelloReply) => {
  if (error) throw error;
  console.log(reply.text);
});
`,
    after: `import { GreeterDefinition, type HelloReply, Mood, MoodNames } from './gen/greeter.rdma.ts';
import { createChannel, createClient } from 'rdma-rpc';

const client = createClient(GreeterDefinition, createChannel('127.0.0.1:5000'));
client.sayHello({ name: MoodNames[Mood.MOOD_GOOD] }).then((reply: HelloReply) => {
  console.log(reply.text);
}, (error) => { throw error; });
`,
  },
  {
    what: 'values and names of an enum of ts-proto',
    before: `import { Mood } from './old/greeter.ts';

export const nameOf = (mood: Mood): string => Mood[mood] ?? \`\${mood}\`;
export const good = [Mood.MOOD_GOOD, Mood['MOOD_GOOD']];
`,
    after: `import { Mood, MoodNames } from './gen/greeter.rdma.ts';

export const nameOf = (mood: Mood): string => MoodNames[mood] ?? \`\${mood}\`;
export const good = [Mood.MOOD_GOOD, Mood['MOOD_GOOD']];
`,
  },
  {
    what: 'names of an enum of protobuf-es, which are shorter there',
    before: `import { Mood } from './gen/greeter_pb.js';

export const nameOf = (mood: Mood) => Mood[mood];
export const all = Object.keys(Mood);
`,
    after: `import { Mood, MoodNames } from './gen/greeter.rdma.js';

export const nameOf = (mood: Mood) => MoodNames[mood];
export const all = Object.keys(Mood);
`,
    left: [
      [3, /^MoodNames has the names of the \.proto file, such as MOOD_UNSPECIFIED instead of UNSPECIFIED/],
      [4, /^Mood is used as a value: it has no names by number, which are in MoodNames/],
    ],
  },
  {
    what: 'the schema of an enum: the file stays as it is',
    before: `import { HelloReplySchema, MoodSchema } from './gen/greeter_pb.js';

export const names = [HelloReplySchema.typeName, MoodSchema.typeName];
export const values = describe(MoodSchema);
`,
    left: [
      [3, /^MoodSchema\.typeName: enums have no schema here; write the full name of the enum as a text/],
      [4, /^MoodSchema: enums have no schema here; Mood has the values, and MoodNames their names/],
    ],
  },
  {
    what: 'a value that only the other generator has: the file stays as it is',
    before: `import { Mood } from './old/greeter.ts';

export const known = (mood: Mood): boolean => mood !== Mood.UNRECOGNIZED;
`,
    left: [[3, /^Mood\.UNRECOGNIZED is not a value of the enum in the \.proto file/]],
  },
  {
    what: 'DeepPartial of ts-proto',
    before: `import { type DeepPartial, HelloReply } from './old/greeter.ts';

export const reply: DeepPartial<HelloReply> = {};
export async function* replies(): AsyncIterable<DeepPartial<HelloReply>> {
  yield HelloReply.fromPartial(reply);
}
`,
    after: `import { HelloReply, type HelloReplyInit } from './gen/greeter.rdma.ts';

export const reply: HelloReplyInit = {};
export async function* replies(): AsyncIterable<HelloReplyInit> {
  yield HelloReply.create(reply);
}
`,
  },
  {
    what: 'DeepPartial of another type: the file stays as it is',
    before: `import type { DeepPartial, HelloReply } from './old/greeter.ts';

export type Replies = DeepPartial<HelloReply[]>;
`,
    left: [[1, /^DeepPartial of \.\/old\/greeter\.ts is not in the code that --gen names/]],
  },
];
