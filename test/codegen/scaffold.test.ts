/**
 * Tests that `rdma-rpc scaffold` writes handlers that follow the .proto, into a file that belongs to the
 * user.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { scaffold } from '../../codegen/index.ts';
import { workspace } from './workspace.ts';

const main = fileURLToPath(new URL('../../dist/bundle/cli.js', import.meta.url));
const shop = `syntax = "proto3";
package shop.v1;
import "google/protobuf/empty.proto";
import "item.proto";
message Order { string id = 1; }
service Shop {
  // Buys it.
  rpc Place(Order) returns (item.Item);
  rpc List(google.protobuf.Empty) returns (stream Order);
  rpc Collect(stream Order) returns (google.protobuf.Empty);
  rpc Talk(stream Order) returns (stream Order);
}
`;
const item =
  'syntax = "proto3";\npackage item;\nmessage Item { int32 n = 1; }\nservice Other { rpc Get(Item) returns (Item); }\n';

async function written(
  existing?: string,
): Promise<{ text: string; added: readonly string[]; others: readonly string[] }> {
  const directory = workspace({
    'proto/shop.proto': shop,
    'proto/item.proto': item,
    ...(existing !== undefined && { 'src/shop.ts': existing }),
  });
  const into = join(directory, 'src/shop.ts');
  const [first, ...rest] = await scaffold({
    files: [join(directory, 'proto/shop.proto')],
    out: join(directory, 'src/gen'),
    into,
  });
  expect(rest).toEqual([]);
  return { text: readFileSync(into, 'utf8'), added: first?.added ?? [], others: first?.others ?? [] };
}

describe('a new file', () => {
  test('has a class per service of the requested files, a method of each kind, and their imports', async () => {
    const { text, added } = await written();
    expect(added).toEqual(['place', 'list', 'collect', 'talk']);
    expect(text).toBe(`import type { ShopHandlers, Order, OrderInit } from './gen/shop.rdma.ts';
import type { ItemInit } from './gen/item.rdma.ts';
import { RpcError, Status, type HandlerContext } from 'rdma-rpc';
import type { Empty, EmptyInit } from 'rdma-rpc/codec';

export class ShopService implements ShopHandlers {
  /** Buys it. */
  async place(_request: Order, _context: HandlerContext): Promise<ItemInit> {
    throw new RpcError(Status.UNIMPLEMENTED, 'shop.v1.Shop/Place is not written yet');
  }

  async *list(_request: Empty, _context: HandlerContext): AsyncGenerator<OrderInit> {
    throw new RpcError(Status.UNIMPLEMENTED, 'shop.v1.Shop/List is not written yet');
  }

  async collect(_requests: AsyncIterable<Order>, _context: HandlerContext): Promise<EmptyInit> {
    throw new RpcError(Status.UNIMPLEMENTED, 'shop.v1.Shop/Collect is not written yet');
  }

  async *talk(_requests: AsyncIterable<Order>, _context: HandlerContext): AsyncGenerator<OrderInit> {
    throw new RpcError(Status.UNIMPLEMENTED, 'shop.v1.Shop/Talk is not written yet');
  }
}
`);
  });
});

describe('an existing file', () => {
  test('keeps its contents, and gets missing methods at the end of its class', async () => {
    const existing = `import type { ShopHandlers } from './gen/shop.rdma.ts';

/** Mine. */
export class MyShop implements ShopHandlers {
  readonly stock = 3; // odd   spacing stays

  place() { return { n: this.stock } }

  private helper(): void {}
}
`;
    const { text, added, others } = await written(existing);
    expect(added).toEqual(['list', 'collect', 'talk']);
    expect(others).toEqual(['helper']);
    for (const line of existing.split('\n').slice(2, 8)) expect(text).toContain(line);
    expect(text.match(/class /g)).toHaveLength(1);
  });

  test('imports a type under another name when the file already uses its name', async () => {
    const { text } = await written('interface Order {}\nclass RpcError {}\n');
    expect(text).toContain('Order as Order2');
    expect(text).toContain('place(_request: Order2,');
    expect(text).toContain('throw new RpcError2(');
  });

  test('stays byte for byte the same when it lacks nothing', async () => {
    const { text } = await written();
    const again = await written(text);
    expect(again).toEqual({ text, added: [], others: [] });
  });
});

describe('the command', () => {
  const run = (directory: string, ...args: string[]) =>
    spawnSync(process.execPath, [main, 'scaffold', ...args], { cwd: directory, encoding: 'utf8' });

  test('reports added handlers and other members of the class', () => {
    const directory = workspace({ 'item.proto': item });
    const args = ['item.proto', '--gen', 'gen', '--into', 'src/other.ts'];
    expect(run(directory, ...args)).toMatchObject({
      status: 0,
      stdout: 'item.Other: OtherService: get added\n',
    });
    expect(run(directory, ...args)).toMatchObject({
      status: 0,
      stdout: 'item.Other: OtherService: has every method\n',
    });
  });

  test('imports output in a folder that begins with a dot by its path', () => {
    const directory = workspace({ 'item.proto': item });
    expect(run(directory, 'item.proto', '--gen', '.gen', '--into', 'other.ts')).toMatchObject({ status: 0 });
    expect(readFileSync(join(directory, 'other.ts'), 'utf8')).toContain("from './.gen/item.rdma.ts'");
  });

  test('ends with 1 for a wrong .proto and for one without a service, and writes nothing', () => {
    const directory = workspace({
      'a.proto': 'syntax = "proto3";\nmessage A { B b = 1; }',
      'b.proto': 'syntax = "proto3";',
    });
    const wrong = run(directory, 'a.proto', '--gen', 'gen', '--into', 'a.ts');
    expect(wrong.status).toBe(1);
    expect(wrong.stderr).toContain('a.proto:2:13: error: unknown type B');
    expect(run(directory, 'b.proto', '--gen', 'gen', '--into', 'a.ts')).toMatchObject({ status: 1 });
    expect(existsSync(join(directory, 'a.ts'))).toBe(false);
  });
});
