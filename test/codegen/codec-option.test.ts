/**
 * Tests the options `preferred_codec` and `default_codec`. The tests check which setting takes precedence,
 * and the errors for invalid values. test/msgpack tests their effect.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { diagnosticsOf, outputOf, proto3 } from './workspace.ts';

describe('codec options', () => {
  const service = (ofService: string, ofMethod: string) =>
    `import "rdma_rpc/options.proto";\nmessage A {}\nservice S {\n  ${ofService}\n  rpc M(A) returns (A) { ${ofMethod} }\n}`;

  test.each([
    [
      'an invalid codec of a method',
      service('', 'option (rdma_rpc.preferred_codec) = JSON;'),
      '7:62: error: rdma_rpc.preferred_codec takes a value of rdma_rpc.Codec (PROTOBUF, MSGPACK) | JSON',
    ],
    [
      'an invalid codec of a service',
      service('option (rdma_rpc.default_codec) = MSGPAK;', ''),
      '6:37: error: rdma_rpc.default_codec takes a value of rdma_rpc.Codec (PROTOBUF, MSGPACK); did you mean MSGPACK? | MSGPAK',
    ],
    [
      'the option of services on a method',
      service('', 'option (rdma_rpc.default_codec) = MSGPACK;'),
      '7:34: error: rdma_rpc.default_codec extends google.protobuf.ServiceOptions, not google.protobuf.MethodOptions | rdma_rpc.default_codec',
    ],
  ])('%s is an error', async (_what, body, expected) => {
    expect(await diagnosticsOf({ 'a.proto': proto3(body) })).toEqual([`a.proto:${expected}`]);
  });

  test.each([
    ['the codec of a service applies to its methods', 'MSGPACK', '', true],
    ['the codec of a method overrides that of its service', 'MSGPACK', 'PROTOBUF', false],
    ['the codec of a method overrides that of its service, the other way round', 'PROTOBUF', 'MSGPACK', true],
  ])('%s', async (_what, ofService, ofMethod, isMsgpack) => {
    const body = service(
      `option (rdma_rpc.default_codec) = ${ofService};`,
      ofMethod === '' ? '' : `option (rdma_rpc.preferred_codec) = ${ofMethod};`,
    );
    expect((await outputOf({ 'a.proto': proto3(body) })).includes('msgpackForm(')).toBe(isMsgpack);
  });

  test("another package's option with the number of ours is not ours", async () => {
    const body = `import "google/protobuf/descriptor.proto";
extend google.protobuf.MethodOptions { int32 theirs = 51723; }
message A {}
service S { rpc M(A) returns (A) { option (theirs) = 1; } }`;
    const output = await outputOf({ 'a.proto': proto3(body) });
    expect(output).toContain('t.theirs');
    expect(output).not.toContain('msgpackForm(');
  });

  test('a value of a newer options.proto is an error', async () => {
    const ours = readFileSync(new URL('../../proto/rdma_rpc/options.proto', import.meta.url), 'utf8');
    const files = {
      'a.proto': proto3(service('', 'option (rdma_rpc.preferred_codec) = LATER;')),
      'rdma_rpc/options.proto': ours.replace('MSGPACK = 1;', 'MSGPACK = 1; LATER = 2;'),
    };
    expect(await diagnosticsOf(files)).toEqual([
      'a.proto:7:7: error: rdma_rpc.Codec 2 is not known to this version; it knows PROTOBUF, MSGPACK | M',
    ]);
  });
});
