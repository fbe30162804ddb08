/**
 * Tests `rdma-rpc perf` between two processes, on the fabrics that every machine has. The tests check its
 * results, its errors, and that it detects damaged data.
 */
import { spawn } from 'node:child_process';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Tested } from '../../../cli/perf/tested.ts';
import { until } from '../../outcomes.ts';
import { main, type Outcome, run } from '../command.ts';
import { expectSchema } from '../schemas.ts';
import { type Listener, listener } from './listener.ts';

const open: { kill(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.kill();
});

async function listening(...args: string[]): Promise<Listener> {
  const found = await listener(args);
  open.push(found);
  return found;
}

const dial = (name: string, port: number, ...args: string[]): Promise<Outcome> =>
  run('perf', name, `127.0.0.1:${port}`, ...args);

/** Sides that sleep share a busy machine well, but write_lat cannot sleep. */
const wait = (name: string): string[] => (name === 'write_lat' ? [] : ['--events']);

function tested({ code, out, errors }: Outcome): Tested {
  expect(code, errors).toBe(0);
  return expectSchema('perf', JSON.parse(out) as Tested);
}

const names = ['send', 'write', 'read', 'atomic'].flatMap((verb) => [`${verb}_lat`, `${verb}_bw`]);

describe.each(['shm', 'tcp'])('over %s', (fabric) => {
  test.each(names)('%s: both sides print the same figures, and no byte is damaged', async (name) => {
    const server = await listening('--json');
    const bytes = name.startsWith('atomic') ? 8 : 64;
    const args = ['--fabric', fabric, '-n', '100', '-s', `${bytes}`, '--validate', '--json', ...wait(name)];
    const client = tested(await dial(name, server.port, ...args));
    const seen = tested(await server.ended);
    expect(client).toMatchObject({ role: 'client', test: name, corrupt: 0 });
    expect(seen).toMatchObject({ role: 'server', test: name, corrupt: 0 });
    expect(seen.peers[0]!.rows).toEqual(client.peers[0]!.rows);
    const [row] = client.peers[0]!.rows;
    expect(row).toMatchObject({ bytes, messages: 100, received: name.startsWith('send') ? 100 : null });
    expect(row!.latencyUs === null).toBe(name.endsWith('bw'));
    expect(row!.bandwidth === null).toBe(name.endsWith('lat'));
    const { user, system } = row!.cpu.client;
    expect(user + system).toBeGreaterThan(0);
  });
});

test('both sides say what they wait for', async () => {
  const server = await listening('send_lat', '--peers', '2');
  await until(() =>
    server.said().includes(`waiting for 2 clients: rdma-rpc perf send_lat HOST:${server.port}`),
  );
  const first = dial('send_lat', server.port, '--fabric', 'tcp', '-n', '5', '-e');
  await until(() => /has connected: 1 of 2 clients/.test(server.said()));
  const child = spawn(process.execPath, [
    main,
    'perf',
    'send_lat',
    `127.0.0.1:${server.port}`,
    '--fabric',
    'tcp',
    '-n',
    '5',
    '-e',
  ]);
  open.push({ kill: () => child.kill('SIGKILL') });
  const [{ code, errors }, there] = await Promise.all([first, server.ended]);
  expect([code, there.code]).toEqual([0, 0]);
  expect(errors).toMatch(/^measuring send_lat: 2 bytes, 5 messages over tcp$/m);
  expect(there.errors).toMatch(/has connected: 2 of 2 clients\nmeasuring send_lat: 2 bytes, 5 messages\n/);
});

test('a sweep has a line for each size', async () => {
  const server = await listening();
  const client = tested(
    await dial('read_bw', server.port, '--fabric', 'shm', '-a', '-n', '5', '-e', '--json'),
  );
  expect(client.peers[0]!.rows.map(({ bytes }) => bytes)).toEqual(
    Array.from({ length: 23 }, (_, i) => 2 ** (i + 1)),
  );
  expect((await server.ended).code).toBe(0);
});

test('a test in both directions, on several queue pairs and for a time, sums both sides', async () => {
  const server = await listening();
  const args = ['--fabric', 'tcp', '-b', '-q', '3', '-D', '1', '-s', '1000', '-e', '--json'];
  const [row] = tested(await dial('send_bw', server.port, ...args)).peers[0]!.rows;
  expect(row!.received).toBe(row!.messages);
  expect(row!.messages).toBeGreaterThan(0);
});

test('latency for a time has a mean and no percentiles', async () => {
  const server = await listening();
  const args = ['--fabric', 'shm', '-D', '1', '-e', '--json'];
  const [row] = tested(await dial('send_lat', server.port, ...args)).peers[0]!.rows;
  expect(row!.latencyUs).toBeNull();
  // The mean is half of a round trip.
  expect(row!.meanUs! * 2 * row!.messages).toBeCloseTo(row!.elapsedUs, -1);
});

test('several peers begin at once, and their figures are summed', async () => {
  const server = await listening('--peers', '2');
  const args = ['--fabric', 'shm', '-n', '200', '-s', '512', '-e', '--validate', '--json'];
  const clients = await Promise.all([1, 2].map(() => dial('send_bw', server.port, ...args)));
  for (const client of clients) tested(client);
  const { code, out } = await server.ended;
  expect(code).toBe(0);
  expect(out.match(/^send_bw with /gm)).toHaveLength(2);
  expect(out).toMatch(/^all 2 peers\n #bytes .*\n 512 +400 /m);
});

/** The first message of a connecting side, without the sizes. */
const firstWords = {
  kind: 'hello',
  protocol: 2,
  test: 'send_bw',
  connection: 'RC',
  atomic: 'fetch_add',
  iterations: 20,
  durationMs: 0,
  depth: 8,
  receiveDepth: 8,
  queuePairs: 1,
  inlineMax: 0,
  signalEvery: 0,
  postList: 1,
  bidirectional: false,
  validate: false,
  events: true,
  sharedReceives: false,
  manager: false,
  multicast: false,
  seed: 1,
  fabrics: ['shm'],
};

async function connection(port: number, options: { allowHalfOpen?: boolean } = {}): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', ...options }).on('error', () => undefined);
  open.push({ kill: () => socket.destroy() });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return socket;
}

/** Starts a proxy between the two sides that changes their messages, and returns its port. */
async function between(port: number, change: (text: string) => string): Promise<number> {
  const sockets = new Set<Socket>();
  const proxy: Server = createServer((client) => {
    const server = connect(port, '127.0.0.1');
    for (const socket of [client, server]) sockets.add(socket.on('error', () => undefined));
    client.on('data', (data) => server.write(change(data.toString())));
    server.on('data', (data) => client.write(data));
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
  });
  open.push({
    kill: () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return (proxy.address() as { port: number }).port;
}

describe.each(['send_bw', 'send_lat', 'write_bw', 'write_lat', 'read_bw', 'read_lat'])('%s', (name) => {
  test('finds data that differs from what was sent, at both sides', async () => {
    const server = await listening();
    // Both sides generate the same data from the seed. With a different seed, every byte counts as damaged.
    const port = await between(server.port, (text) => text.replace(/"seed":\d+/, '"seed":1'));
    const client = await dial(
      name,
      port,
      '--fabric',
      'tcp',
      '--validate',
      '-n',
      '50',
      '-s',
      '64',
      ...wait(name),
    );
    for (const { code, errors } of [client, await server.ended]) {
      expect(code).toBe(1);
      expect(errors).toMatch(
        // With two seeds, one byte in 256 is equal by chance.
        /error: \d+ of 50 messages arrived with wrong bytes; the first: .* differs from byte \d+ on/,
      );
    }
  });
});

describe('an error is one clear sentence without a stack', () => {
  const refused = async (outcome: Promise<Outcome>, code: number, sentence: RegExp) => {
    const found = await outcome;
    expect(found.errors).toMatch(sentence);
    expect(found.errors).not.toMatch(/^\s+at /m);
    expect(found.code).toBe(code);
  };

  test.each<[string[], RegExp]>([
    [['send', '127.0.0.1'], /unknown test 'send': give one of send_lat, send_bw/],
    [['127.0.0.1'], /unknown test '127.0.0.1'.*then the address/],
    [['send_lat', '127.0.0.1:70000'], /is not an address: give host, host:port or \[IPv6\]:port/],
    [['send_lat', '127.0.0.1', '-s', '0'], /Give bytes from 1 to/],
    [['send_lat', '127.0.0.1', '-q', '2'], /uses one queue pair/],
    [['send_lat', '127.0.0.1', '-b'], /--bidirectional is for bandwidth/],
    [['write_lat', '127.0.0.1', '-e'], /polls memory/],
    [['send_bw', '127.0.0.1', '--mcast'], /--mcast sends datagrams: give --connection UD/],
    [['send_bw', '127.0.0.1', '--mcast', '-c', 'UD', '-q', '2'], /--mcast is for one/],
    [['send_bw', '127.0.0.1', '-R', '-c', 'UC'], /--rdma_cm connects queue pairs of type RC here, not UC/],
    [['send_bw', '127.0.0.1', '-R', '--fabric', 'shm'], /shm connects by a unix socket.*--fabric verbs/],
    [['send_bw', '127.0.0.1', '-R', '--fabric', 'tcp'], /tcp connects by TCP.*--fabric verbs/],
    [['send_bw', '127.0.0.1', '-R', '--fabric', 'bare'], /connects by the addresses.*--fabric verbs/],
    [['read_lat', '127.0.0.1', '-c', 'UC'], /UC carries SENDs and WRITEs only/],
    [['send_bw', '127.0.0.1', '--fabric', 'rdma'], /Allowed choices are shm, tcp, verbs, bare/],
    [['send_bw', '127.0.0.1', '-q', '1024', '-t', '16384'], /are more than 1048576 together/],
    [['send_bw', '127.0.0.1', '-s', '1073741824', '-q', '4'], /a smaller --size or --qp/],
    [['send_bw', '127.0.0.1', '-s', '1073741824', '--validate'], /a smaller --size or --qp/],
    [['send_lat', '[::1]:0'], /is not an address: give host, host:port or \[IPv6\]:port/],
    [['send_lat', 'unix:/run/perf'], /is not an address: give host, host:port or \[IPv6\]:port/],
  ])('for %s', (args, sentence) => refused(run('perf', ...args), 2, sentence));

  test('when nothing listens', () =>
    refused(
      run('perf', 'send_lat', '127.0.0.1:1'),
      1,
      /cannot connect to 127.0.0.1:1: no program listens there/,
    ));

  test('when another program listens', async () => {
    const port = await otherProgram((socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await refused(dial('send_lat', port), 1, /is not rdma-rpc perf: it sends something else/);
  });

  test('when the listener is silent', async () => {
    const port = await otherProgram(() => undefined);
    await refused(dial('send_lat', port, '--timeout', '300'), 1, /has not answered within 0.3 s/);
  });

  test('when the address belongs to another process', async () => {
    const first = await listening();
    await refused(
      run('perf', '--listen', '127.0.0.1', '-p', String(first.port)),
      1,
      /cannot listen on 127.0.0.1, port \d+: another program listens there/,
    );
  });

  test('when the listening side has other options, which then continues to listen', async () => {
    const server = await listening('send_bw', '-s', '128');
    await refused(dial('read_bw', server.port), 1, /this side listens for send_bw, and .* asks for read_bw/);
    await refused(dial('send_bw', server.port, '-s', '64'), 1, /asks for sizes 64, where 128 was expected/);
    expect(server.said()).toMatch(/rejected: this side listens for send_bw/);
    const args = ['-s', '128', '-n', '50', '-e', '--fabric', 'shm'];
    expect((await dial('send_bw', server.port, ...args)).code).toBe(0);
    expect((await server.ended).code).toBe(0);
  });

  test('for one of two simultaneous peers with different options', async () => {
    const server = await listening('--peers', '2');
    const hello = (socket: Socket, size: number) =>
      socket.write(`${JSON.stringify({ ...firstWords, sizes: [size] })}\n`);
    const answered = (socket: Socket) =>
      new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
    // Both sides are connected before either has sent its request.
    const sockets = await Promise.all([1, 2].map(() => connection(server.port)));
    const answers = sockets.map(answered);
    hello(sockets[0]!, 64);
    expect(await answers[0]).toMatch(/"accepted"/);
    hello(sockets[1]!, 128);
    expect(await answers[1]).toMatch(/asks for sizes 128, where 64 was expected/);
  });

  test('rejected peers that do not close hold no descriptor of the listening side', async () => {
    const server = await listening('send_bw');
    const stay = await connection(server.port, { allowHalfOpen: true });
    stay.write('{"kind":"bye"}\n');
    // This side notices that the other side has ended, and does not answer. Later messages are refused.
    await new Promise<void>((resolve) => stay.resume().once('end', resolve));
    let closed = false;
    stay.once('close', () => {
      closed = true;
    });
    await until(() => {
      stay.write('?');
      return closed;
    });
    expect((await dial('send_bw', server.port, '--fabric', 'shm', '-n', '20', '-e')).code).toBe(0);
    expect((await server.ended).code).toBe(0);
  });

  test('any number of silent connections blocks no peer', async () => {
    const server = await listening('send_bw');
    for (let i = 0; i < 100; i++) await connection(server.port);
    expect((await dial('send_bw', server.port, '--fabric', 'shm', '-n', '20', '-e')).code).toBe(0);
    expect((await server.ended).code).toBe(0);
  });

  test('when the addon is missing', async () => {
    const env = { ...process.env, NO_COLOR: '1', RDMA_RPC_ADDON: '/nowhere/rdma_rpc.node' };
    const child = spawn(process.execPath, [main, 'perf', 'send_lat', '127.0.0.1:1'], { env });
    let errors = '';
    child.stderr.on('data', (text) => {
      errors += String(text);
    });
    const code = await new Promise<number>((resolve) => child.once('close', (ended) => resolve(ended ?? -1)));
    await refused(Promise.resolve({ code, out: '', errors }), 1, /error: .*\/nowhere\/rdma_rpc.node/);
  });

  test('for a missing device', async () => {
    const server = await listening();
    await refused(
      dial('send_lat', server.port, '--fabric', 'bare', '-d', 'nosuch0'),
      1,
      /verbs is off|there is no RDMA device/,
    );
  });

  test.each([
    ['an empty line', ''],
    ['no JSON', 'GET / HTTP/1.1\r\n\r\n'],
    ['another kind of message', '{"kind":"bye"}\n'],
    ['another version', '{"kind":"hello","protocol":999}\n'],
    ['sizes that make no sense', '{"kind":"hello","protocol":2,"sizes":[-1]}\n'],
    ['a line without an end', `{"${'x'.repeat(2 << 20)}`],
  ])(
    'the listening side reports an unknown program that sends %s, and continues to listen',
    async (_, text) => {
      const server = await listening();
      const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
      await new Promise<void>((resolve) => socket.end(text, () => resolve()));
      socket.resume();
      await new Promise<void>((resolve) => socket.on('close', () => resolve()));
      const args = ['--fabric', 'shm', '-n', '20', '-e'];
      expect((await dial('send_lat', server.port, ...args)).code).toBe(0);
      const { code, errors } = await server.ended;
      expect(code).toBe(0);
      expect(errors).toMatch(/rejected: /);
    },
  );

  test('when one of several peers ends, the listening side and the others end, too', async () => {
    const server = await listening('--peers', '2');
    const args = ['--fabric', 'shm', '-s', '64', '-e', '-D', '60'];
    const other = dial('send_bw', server.port, ...args);
    const address = `127.0.0.1:${server.port}`;
    const killed = spawn(process.execPath, [main, 'perf', 'send_bw', address, ...args], { stdio: 'ignore' });
    await connectedTo(server.port);
    killed.kill('SIGKILL');
    await refused(other, 1, /has gone|error: /);
    await refused(server.ended, 1, /has gone|error: /);
  });

  test('when a peer is killed while it measures, the other side ends with an error', async () => {
    const server = await listening();
    const client = dial('send_bw', server.port, '--fabric', 'tcp', '-D', '60', '-e');
    await connectedTo(server.port);
    server.kill();
    await refused(client, 1, /has gone|error: /);
  });
});

async function otherProgram(answer: (socket: Socket) => void): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    answer(socket);
  });
  open.push({
    kill: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

/** The listening side accepts no other peer once it has one. */
async function connectedTo(port: number): Promise<void> {
  for (;;) {
    const refusal = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => resolve(true));
      socket.on('connect', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (refusal) return;
  }
}
