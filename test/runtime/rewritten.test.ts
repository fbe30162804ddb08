/**
 * Tests calls over shared memory while another process rewrites all memory that a peer can write to. With
 * `shm`, this memory is the receives, and the arena in which large messages are decoded. With `shm-fd`, it is
 * the receives, rings and staging memory, and messages are decoded from a copy. Calls may fail and
 * connections may end. This process continues, and calls work again once the other process has stopped. The
 * test also runs with sanitizers (scripts/addon-tests.mjs). RDMA_RPC_REWRITTEN is the number of messages that
 * are decoded during the test.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createClient, type MethodDefinition, RpcError, type ServiceDefinition, Status } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { methodId } from '../../runtime/codec/service/method-id.ts';
import { msgpackType } from '../../runtime/msgpack/msgpack-type.ts';
import { Maps, Packed, Tree } from '../codec/gen/everything.rdma.ts';
import { EchoDefinition, EchoMessage } from './gen/echo.rdma.ts';
import { openPair } from './pair.ts';

/** Each text is decoded once. */
const messages = Number(process.env.RDMA_RPC_REWRITTEN ?? 10_000);
const atOnce = 24;

const types = {
  echo: EchoMessage,
  tree: Tree,
  maps: Maps,
  packed: Packed,
  loose: msgpackType<object>('test.Any'),
};
type Name = keyof typeof types;

const methods = Object.entries(types).map(([key, type]) => {
  const fullName = `test.Rewritten/${key}`;
  const options = {};
  return [
    key,
    {
      ...EchoDefinition.methods.echo,
      name: key,
      fullName,
      id: methodId(fullName),
      requestType: type,
      responseType: type,
      options,
    },
  ];
});
const definition = {
  name: 'Rewritten',
  fullName: 'test.Rewritten',
  methods: Object.fromEntries(methods) as Record<Name, MethodDefinition>,
} as unknown as ServiceDefinition;

const text = (length: number) => 'ä€𝄞a'.repeat(length / 4);
const bytes = (length: number) => new Uint8Array(length).fill(0x61);
const tree = (length: number) => ({
  label: text(length),
  payload: bytes(length),
  named: { [text(20)]: { label: text(40) } },
});
/**
 * Small messages, which arrive in receives, and large messages, which lie in the arena, also in the aligned
 * layout.
 */
const requests: readonly [Name, object][] = [
  ['echo', { text: text(40), number: 7 }],
  ['echo', { text: text(4000), payload: bytes(300) }],
  ['echo', { text: text(1000), payload: bytes(12_000), parts: [bytes(9000), bytes(20)] }],
  ['tree', tree(60)],
  ['tree', { ...tree(2400), children: [tree(12), tree(1600), { children: [tree(60)] }] }],
  [
    'maps',
    {
      textByString: Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`${i}${text(20)}`, text(24)])),
    },
  ],
  [
    'packed',
    {
      fInt64: Array.from({ length: 1500 }, (_, i) => BigInt(i) << 30n),
      fString: Array.from({ length: 300 }, () => text(16)),
    },
  ],
  [
    'loose',
    { texts: [text(40), text(2000)], numbers: [1, 2.5, -3], bytes: bytes(20_000), nested: { a: { b: [] } } },
  ],
];

/** Starts the process. Resolves when the writer is at work, to a function that stops it. */
async function rewriter(names: readonly string[]): Promise<() => Promise<void>> {
  const script = fileURLToPath(new URL('process/rewriter.mjs', import.meta.url));
  // The libraries that the sanitized run loads into this process are left out.
  const child = fork(script, [String(process.pid), ...names], {
    env: { ...process.env, LD_PRELOAD: '' },
    execArgv: [],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await new Promise<void>((resolve, reject) => {
    child.on('message', ({ pages }: { pages: number }) => pages > 0 && resolve());
    void ended.then((code) => reject(new Error(`the rewriter has ended with ${code}`)));
  });
  return async () => {
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    child.kill();
    await ended;
  };
}

test.each([
  ['shm', 'INTERNAL', ['receive slab', 'arena', 'moved']],
  // A false value in a ring ends the session.
  ['shm-fd', 'UNAVAILABLE', ['receive slab', 'staging', 'queue-pair']],
] as const)(
  '%s: a process that rewrites messages while they are decoded affects only these messages',
  {
    timeout: 1_800_000,
  },
  async (fabric, failure, names) => {
    const echo = (request: unknown) => request;
    const handlers = Object.fromEntries(Object.keys(types).map((key) => [key, echo]));
    const pair = await openPair(
      fabric,
      (server) => server.add(definition, handlers as never),
      {},
      { backoffMs: 1, backoffMaxMs: 20 },
    );
    const client = createClient(definition, pair.channel) as unknown as Record<
      Name,
      (request: object, options: object) => Promise<object>
    >;
    const outcomes = new Map<string, number>();
    const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    const call = async (number: number): Promise<void> => {
      const [key, request] = requests[number % requests.length]!;
      try {
        await client[key](request, { timeoutMs: 5000, waitForReady: true });
        count('OK');
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        count(Object.keys(Status).find((name) => Status[name as keyof typeof Status] === error.code) ?? '');
      }
    };
    for (let number = 0; number < requests.length; ++number) await call(number);
    expect(outcomes).toEqual(new Map([['OK', requests.length]]));

    const stop = await rewriter(names);
    let next = 0;
    // On a busy machine it may take longer until a write hits a message.
    const enough = () => next >= messages / 2 && (outcomes.has(failure) || next >= 50 * messages);
    const work = async () => {
      while (!enough()) await call(next++);
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    await stop();
    // The process has hit messages, and most calls succeeded nevertheless.
    expect(outcomes.get(failure) ?? 0).toBeGreaterThan(0);
    expect(outcomes.get('OK') ?? 0).toBeGreaterThan(messages / 10);
    if (process.env.RDMA_RPC_REWRITTEN !== undefined) console.log(Object.fromEntries(outcomes));

    outcomes.clear();
    for (let number = 0; number < 10 * requests.length; ++number) await call(number);
    expect(outcomes.get('OK')).toBeGreaterThan(9 * requests.length);
    await pair.close();
  },
);
