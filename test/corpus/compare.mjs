/**
 * Compares some modules of the corpus with protobuf-es and protobufjs, in a separate process that
 * equality.mjs starts. Random messages of each type go in both directions, in the binary format and in JSON.
 * Damaged encodings are either refused with a CodecError or accepted. Both other libraries work from the
 * descriptors in our files. The process prints a line of JSON.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  create,
  createFileRegistry,
  fromJson as esFromJson,
  toJson as esToJson,
  fromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { transform } from 'esbuild';
import protobuf from 'protobufjs';
import descriptors from 'protobufjs/ext/descriptor.js';
import protojson from 'protobufjs/ext/protojson.js';
import * as codec from '../../dist/runtime/codec/index.js';
import { fromJson, toJson } from '../../dist/runtime/codec/json/index.js';
import { Endless, Random, message as randomMessage } from './random.mjs';

const { createRegistry, equals, isMessageType } = codec;
protojson.install?.(protobuf);

/** Types that may differ, each with the reason. */
const known = {
  'json_enumval_custom_string.Knight':
    'names of enum values in JSON that an option of edition 2026 gives are not supported',
};

/** Number of samples of each type. */
const samples = 2;
const { from, to, paths } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

// --- modules

const compiled = new Map();
/** Compiles modules to JavaScript in `to`, with everything that they import. */
function compile(path) {
  if (!compiled.has(path)) compiled.set(path, compileNew(path));
  return compiled.get(path);
}
async function compileNew(path) {
  const { code } = await transform(readFileSync(join(from, path), 'utf8'), {
    loader: 'ts',
    target: 'node20',
  });
  const imports = [];
  const text = code.replace(/(from "\.[^"]*\.rdma)\.ts"/g, (_, start) => {
    imports.push(join(dirname(path), `${start.slice(6)}.ts`));
    return `${start}.mjs"`;
  });
  const target = join(to, path.replace(/\.ts$/, '.mjs'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
  for (const each of imports) await compile(each);
}
await Promise.all(paths.map(compile));
const modules = [];
for (const path of paths)
  modules.push(await import(pathToFileURL(join(to, path.replace(/\.ts$/, '.mjs'))).href));

// --- the others

const isDescriptor = (value) =>
  typeof value === 'object' && value !== null && 'dependencies' in value && 'bytes' in value;
const descriptorsOf = (modules) => modules.flatMap(Object.values).filter(isDescriptor);
/** A package may contain a different version of descriptor.proto than the runtime has. */
const own = new Map(descriptorsOf(modules).map(({ name, bytes }) => [name, bytes]));
/** Imports come first. */
const files = new Map();
function addFile({ name, dependencies, bytes }) {
  if (files.has(name)) return;
  for (const dependency of dependencies) addFile(dependency);
  files.set(name, own.get(name) ?? bytes);
}
for (const each of descriptorsOf([...modules, codec])) addFile(each);
const file = [...files.values()].map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
const set = create(FileDescriptorSetSchema, { file });
const es = createFileRegistry(set);
const root = protobuf.Root.fromDescriptor(
  descriptors.FileDescriptorSet.decode(toBinary(FileDescriptorSetSchema, set)),
);
root.resolveAll();
const registry = createRegistry(codec);

// --- comparison

const failures = [];
const count = { types: 0, messages: 0, json: 0, refused: 0, endless: 0, known: 0, damaged: 0, accepted: 0 };

function attempt(run) {
  try {
    return { value: run() };
  } catch (error) {
    return { refused: error.message, error };
  }
}
/**
 * Converts JSON to text and back, as JSON travels, with its members in a random order. The other libraries
 * write all digits of a float. Reading the JSON again shows that no digit of a double is lost.
 */
const canonical = (json) =>
  JSON.stringify(json, (_, value) =>
    typeof value === 'number'
      ? Math.fround(value)
      : typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
  );

/** Each of these throws an error that describes the difference. */
const others = [
  {
    name: 'protobuf-es',
    type: (name) => es.getMessage(name),
    binary: (type, bytes) => toBinary(type, fromBinary(type, bytes)),
    toJson: (type, bytes) => esToJson(type, fromBinary(type, bytes), { registry: es }),
    fromJson: (type, json) => toBinary(type, esFromJson(type, json, { registry: es })),
  },
  {
    name: 'protobufjs',
    type: (name) => root.lookupType(name),
    binary: (type, bytes) => type.encode(type.decode(bytes)).finish(),
    toJson: (type, bytes) => type.toJson(type.decode(bytes)),
    fromJson: (type, json) => type.encode(type.fromJson(json)).finish(),
  },
];

function compareJson(other, theirs, type, message, bytes) {
  const mine = attempt(() => toJson(type, message, { registry }));
  const their = attempt(() => other.toJson(theirs, bytes));
  if ('refused' in mine || 'refused' in their) {
    count.refused++;
    if ('refused' in mine !== 'refused' in their)
      throw new Error(`JSON is refused by one: ours ${mine.refused}, theirs ${their.refused}`);
    return;
  }
  count.json++;
  if (canonical(mine.value) !== canonical(their.value))
    throw new Error(`JSON differs: ours ${canonical(mine.value)}, theirs ${canonical(their.value)}`);
  if (!equals(type, fromJson(type, their.value, { registry }), message))
    throw new Error('their JSON, read by us');
  if (!equals(type, type.decode(other.fromJson(theirs, mine.value)), message))
    throw new Error('our JSON, read by them');
}

/** Returns bytes that are changed, cut off or repeated. */
function damage(random, bytes) {
  if (random.below(3) === 0) return bytes.slice(0, random.below(bytes.length + 1));
  const damaged = Buffer.concat(random.below(2) === 0 ? [bytes] : [bytes, bytes]);
  for (let i = random.below(4); i >= 0 && damaged.length > 0; i--)
    damaged[random.below(damaged.length)] = random.below(256);
  return damaged;
}

/** For any bytes, a decoder either returns a message that can be sent again, or throws CodecError. */
function survive(type, bytes) {
  count.damaged++;
  const read = attempt(() => type.decode(bytes));
  if (read.error !== undefined) {
    if (!(read.error instanceof codec.CodecError)) throw read.error;
    return;
  }
  count.accepted++;
  if (!equals(type, type.decode(type.encode(read.value)), read.value))
    throw new Error('not what was sent on');
}

for (const type of new Set(modules.flatMap((module) => Object.values(module).filter(isMessageType)))) {
  count.types++;
  const random = new Random(type.typeName);
  for (let i = 0; i < samples; i++) {
    const init = attempt(() => randomMessage(random, type));
    if (init.error instanceof Endless) {
      count.endless++;
      break;
    }
    const message = type.decode(type.encode(init.value));
    const bytes = type.encode(message);
    count.messages++;
    for (let k = 0; k < 3; k++) {
      const damaged = damage(random, bytes);
      try {
        survive(type, damaged);
      } catch (error) {
        failures.push(`${type.typeName}: ${Buffer.from(damaged).toString('hex').slice(0, 400)}: ${error}`);
      }
    }
    for (const other of others) {
      try {
        const theirs = other.type(type.typeName);
        if (!equals(type, type.decode(other.binary(theirs, bytes)), message)) throw new Error('binary');
        compareJson(other, theirs, type, message, bytes);
      } catch (error) {
        if (Object.hasOwn(known, type.typeName)) count.known++;
        else failures.push(`${type.typeName}: ${other.name}: ${String(error.message).slice(0, 400)}`);
      }
    }
  }
}
console.log(JSON.stringify({ ...count, failures: failures.length, shown: failures.slice(0, 10) }));
