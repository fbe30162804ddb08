/**
 * The listening side of `rdma-rpc perf`. It waits for the given number of peers, runs the test that they ask
 * for with all of them at once, and ends.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { formatAddress, peerEndpoint, unmapped } from '../../runtime/control/socket/address.ts';
import { Control, PerfError } from './control.ts';
import { type Hello, readHello } from './messages.ts';
import { type PerfFabric, type Plan, planText, type TestName } from './plan.ts';
import { type DeviceFlags, Side } from './side.ts';
import { type PeerRows, type Tested, testedOf } from './tested.ts';

export interface ListenOptions extends DeviceFlags {
  readonly host: string;
  readonly port: number;
  readonly peers: number;
  readonly events: boolean;
  readonly fabric?: PerfFabric;
  /** If set, only this test is run. */
  readonly test?: TestName;
  /** The settings given on the listening side. A peer that asks for different settings is refused. */
  readonly given: Partial<Plan>;
  /** Ends the wait for peers. A test that has begun ends with its connections. */
  readonly signal?: AbortSignal;
  /** Prints the listening address, rejected peers, and what the command waits for. */
  readonly say: (text: string) => void;
}

const helloMs = 10_000;
/**
 * Maximum number of connections that have not sent a request yet. A further connection closes the oldest of
 * them, so that silent connections cannot keep clients out.
 */
const silentMax = 64;
const full =
  'the test has all its peers already: try again later, or give the listening side a larger --peers';

/** Makes all peers begin a size together. If one of them cannot begin, no peer begins. */
class Together {
  #waiting: { go(): void; fail(error: Error): void }[] = [];
  #error: Error | undefined;
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  ready(): Promise<void> {
    return new Promise((go, fail) => {
      if (this.#error !== undefined) {
        fail(this.#error);
        return;
      }
      this.#waiting.push({ go, fail });
      if (this.#waiting.length < this.#count) return;
      for (const each of this.#waiting.splice(0)) each.go();
    });
  }

  /** Handles the failure of a peer. */
  fail(error: Error): void {
    this.#error ??= error;
    for (const each of this.#waiting.splice(0)) each.fail(error);
  }
}

interface Peer {
  readonly control: Control;
  readonly hello: Hello;
}

/** Throws a PerfError. */
export async function listen(options: ListenOptions): Promise<Tested> {
  const peers = await gather(options);
  const plan = { ...peers[0]!.hello.plan, events: peers[0]!.hello.plan.events || options.events };
  options.say(`measuring ${planText(plan)}`);
  const together = new Together(peers.length);
  const ended = await Promise.allSettled(
    peers.map(async (peer) => {
      try {
        return await serve(peer, plan, options, () => together.ready());
      } catch (error) {
        together.fail(error as Error);
        for (const { control } of peers) control.fail(error as Error);
        throw error;
      }
    }),
  );
  for (const { control } of peers) control.close();
  const failed = ended.find((each) => each.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return testedOf(
    'server',
    plan,
    ended.map((each) => (each as PromiseFulfilledResult<PeerRows>).value),
  );
}

/**
 * Waits for peers that have sent their request. Rejects other peers, and prints a line about each rejection.
 */
async function gather(options: ListenOptions): Promise<Peer[]> {
  const { host, port, peers: wanted, say } = options;
  const server = createServer();
  const found: Peer[] = [];
  const controls = new Set<Control>();
  const silent = new Set<Control>();
  try {
    await listening(server, host, port);
    const { port: bound } = server.address() as { port: number };
    say(`listening on ${formatAddress({ kind: 'tcp', host, port: bound })}`);
    say(`${waitingText(wanted)}: rdma-rpc perf ${options.test ?? 'TEST'} HOST:${bound}, on the other side`);
    await new Promise<void>((resolve, reject) => {
      options.signal?.addEventListener('abort', () => reject(new PerfError('no client came')), {
        once: true,
      });
      server.on('connection', (socket: Socket) => {
        const control = new Control(socket, nameOf(socket));
        controls.add(control);
        silent.add(control);
        const [oldest] = silent;
        if (silent.size > silentMax) oldest!.drop();
        socket.once('close', () => {
          controls.delete(control);
          silent.delete(control);
        });
        // The first peer's request limits the requests of the other peers. The first peer is known only when
        // a peer has sent its request.
        const heard = hear(control, options, () => found[0]).finally(() => silent.delete(control));
        heard.then(
          (hello) => {
            if (found.length === wanted) {
              control.fail(new PerfError(full));
              return;
            }
            const peer = { control, hello };
            found.push(peer);
            control.onError = () => {
              if (found.length === wanted) return;
              found.splice(found.indexOf(peer), 1);
              say(`${control.peer} has gone: ${found.length} of ${wanted} clients`);
            };
            control.send({ kind: 'accepted' });
            if (wanted > 1) say(`${control.peer} has connected: ${found.length} of ${wanted} clients`);
            if (found.length === wanted) resolve();
          },
          (error: Error) => {
            control.fail(error);
            say(`rejected: ${error.message}`);
          },
        );
      });
    });
  } finally {
    server.close();
    // Closes other connections, so that they cannot delay the test.
    for (const control of controls)
      if (!found.some((peer) => peer.control === control)) control.fail(new PerfError(full));
  }
  return found;
}

const waitingText = (clients: number): string =>
  clients === 1 ? 'waiting for a client' : `waiting for ${clients} clients`;

const nameOf = (socket: Socket): string => {
  const { host = '', port = 0 } = peerEndpoint(socket) ?? {};
  return formatAddress({ kind: 'tcp', host: unmapped(host), port });
};

const remedies: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there: choose another --port',
  EADDRNOTAVAIL: 'this machine does not have that address',
  EACCES: 'ports below 1024 are for root',
};

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
      reject(new PerfError(`cannot listen on ${host}, port ${port}: ${remedies[code] ?? code}`));
    });
    server.listen(port, host, resolve);
  });
}

async function hear(
  control: Control,
  options: ListenOptions,
  firstPeer: () => Peer | undefined,
): Promise<Hello> {
  const hello = readHello(await control.receive('hello', helloMs));
  const { plan } = hello;
  const first = firstPeer();
  if (options.test !== undefined && plan.test !== options.test)
    throw new PerfError(
      `this side listens for ${options.test}, and ${control.peer} asks for ${plan.test}: give both sides the same test`,
    );
  const wanted: Partial<Plan> = { ...options.given, ...(first === undefined ? {} : first.hello.plan) };
  for (const [name, value] of Object.entries(wanted)) {
    const asked = plan[name as keyof Plan];
    if (name !== 'seed' && String(asked) !== String(value))
      throw new PerfError(
        `${control.peer} asks for ${name} ${asked}, where ${value} was expected: give both sides the same flags`,
      );
  }
  return hello;
}

async function serve(
  { control, hello }: Peer,
  plan: Plan,
  options: ListenOptions,
  together: () => Promise<void>,
): Promise<PeerRows> {
  const mine = { ...plan, seed: hello.plan.seed };
  const { side, fabric } = await openFirst(hello.fabrics, mine, control, options);
  try {
    await side.connect(fabric);
    const rows = [];
    let firstCorrupt = '';
    for (const bytes of plan.sizes) {
      const { row, corrupt } = await side.step(bytes, together);
      rows.push(row);
      firstCorrupt ||= corrupt;
    }
    return {
      address: control.addresses.peer,
      fabric,
      device: side.device,
      peerDevice: side.peerDevice,
      rows,
      firstCorrupt,
    };
  } finally {
    await side.close();
  }
}

/** Opens the first of the peer's fabrics that this side also supports. */
async function openFirst(
  fabrics: readonly PerfFabric[],
  plan: Plan,
  control: Control,
  options: ListenOptions,
): Promise<{ side: Side; fabric: PerfFabric }> {
  const reasons: string[] = [];
  for (const fabric of fabrics) {
    if (options.fabric !== undefined && fabric !== options.fabric) {
      reasons.push(`this side was told --fabric ${options.fabric}, not ${fabric}`);
      continue;
    }
    try {
      return { side: await Side.open(fabric, plan, control, false, options), fabric };
    } catch (error) {
      reasons.push((error as Error).message);
    }
  }
  throw new PerfError(reasons.join('; '));
}
