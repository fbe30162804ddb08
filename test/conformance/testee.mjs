/**
 * The program with which the conformance runner communicates. The program reads requests on standard input
 * and writes responses on standard output, each behind its length in four bytes. main.mjs starts the runner,
 * which starts this program. The argument is the folder with the generator's output for the suite's .proto
 * files.
 */
import { readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as wellKnown from 'rdma-rpc/codec';
import { CodecError, createRegistry } from 'rdma-rpc/codec';
import { fromJsonString, toJsonString } from 'rdma-rpc/json';
import { fromText, toText } from 'rdma-rpc/text';

const folder = process.argv[2];
const load = (path) => import(pathToFileURL(join(folder, `${path}.rdma.js`)).href);
const { ConformanceRequest, ConformanceResponse, WireFormat, TestCategory, FailureSet } =
  await load('conformance/conformance');
const modules = await Promise.all(
  ['proto2', 'proto3', 'edition2023', 'proto2_editions', 'proto3_editions'].map((name) =>
    load(`google/protobuf/test_messages_${name}`),
  ),
);
const registry = createRegistry(...modules, wellKnown, { FailureSet });

function read(type, { payload, testCategory }) {
  switch (payload.case) {
    case 'protobufPayload':
      return type.decode(payload.value);
    case 'jsonPayload':
      return fromJsonString(type, payload.value, {
        registry,
        ignoreUnknownFields: testCategory === TestCategory.JSON_IGNORE_UNKNOWN_PARSING_TEST,
      });
    case 'textPayload':
      return fromText(type, payload.value, { registry });
    default:
      return undefined;
  }
}

function write(type, message, { requestedOutputFormat, printUnknownFields }) {
  switch (requestedOutputFormat) {
    case WireFormat.PROTOBUF:
      return { case: 'protobufPayload', value: type.encode(message) };
    case WireFormat.JSON:
      return { case: 'jsonPayload', value: toJsonString(type, message, { registry }) };
    case WireFormat.TEXT_FORMAT:
      return {
        case: 'textPayload',
        value: toText(type, message, { registry, unknownFields: printUnknownFields }),
      };
    default:
      return { case: 'skipped', value: `output format ${requestedOutputFormat}` };
  }
}

/** An error of any other class is a fault of ours, which the runner then reports. */
function attempt(kind, run) {
  try {
    return { value: run() };
  } catch (error) {
    const own = error instanceof CodecError;
    return {
      failed: { case: own ? kind : 'runtimeError', value: own ? error.message : String(error.stack) },
    };
  }
}

function respond(request) {
  const type = registry.find(request.messageType);
  if (type === undefined) return { case: 'runtimeError', value: `unknown message ${request.messageType}` };
  const input = attempt('parseError', () => read(type, request));
  if (input.failed !== undefined) return input.failed;
  if (input.value === undefined) return { case: 'skipped', value: `input ${request.payload.case}` };
  const output = attempt('serializeError', () => write(type, input.value, request));
  return output.failed ?? output.value;
}

function readExactly(length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const count = readSync(0, bytes, at, length - at, null);
    if (count === 0) return undefined;
    at += count;
  }
  return bytes;
}

function writeAll(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

for (let head = readExactly(4); head !== undefined; head = readExactly(4)) {
  const bytes = readExactly(head.readUInt32LE(0));
  if (bytes === undefined) break;
  const response = ConformanceResponse.encode({ result: respond(ConformanceRequest.decode(bytes)) });
  const length = Buffer.alloc(4);
  length.writeUInt32LE(response.length);
  writeAll(Buffer.concat([length, response]));
}
