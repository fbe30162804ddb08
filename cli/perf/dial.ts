/** The connecting side of `rdma-rpc perf`: chooses the test, and runs it. */
import { connect, type Socket } from 'node:net';
import { whyNoVerbs } from '../../runtime/control/verbs-devices.ts';
import { Control, PerfError } from './control.ts';
import { helloMessage } from './messages.ts';
import { fabricNames, type PerfFabric, type Plan, planText, whyNotPlan } from './plan.ts';
import { type DeviceFlags, Side } from './side.ts';
import { type Tested, testedOf } from './tested.ts';

export interface DialOptions extends DeviceFlags {
  readonly host: string;
  readonly port: number;
  readonly fabric?: PerfFabric;
  readonly timeoutMs: number;
  /** Prints what the command is waiting for. Default: nothing. */
  readonly say?: (text: string) => void;
}

/** A wait is printed only when it takes longer than this. */
const noticedMs = 1000;

/** Throws a PerfError. */
export async function dial(plan: Plan, options: DialOptions): Promise<Tested> {
  const control = new Control(await connected(options), `${options.host}:${options.port}`);
  let side: Side | undefined;
  try {
    control.send(helloMessage({ plan, fabrics: candidates(plan, control, options) }));
    await control.receive('accepted', options.timeoutMs);
    // The listening side first waits for all its peers, without a limit.
    const waiting = setTimeout(() => {
      options.say?.(`connected to ${control.peer}: waiting for its other clients`);
    }, noticedMs);
    const offer = await control.peek('address', 0).finally(() => clearTimeout(waiting));
    const fabric = fabricNames.find((name) => name === offer.fabric);
    if (fabric === undefined)
      throw new PerfError(
        `${control.peer} offers a fabric that is unknown here: install the same release of rdma-rpc on both sides`,
      );
    side = await Side.open(fabric, plan, control, true, options);
    await side.connect(fabric);
    options.say?.(`measuring ${planText(plan)} over ${fabric}`);
    const rows = [];
    let firstCorrupt = '';
    for (const bytes of plan.sizes) {
      const { row, corrupt } = await side.step(bytes, async () => undefined);
      rows.push(row);
      firstCorrupt ||= corrupt;
    }
    const { device, peerDevice } = side;
    return testedOf('client', plan, [
      { address: control.addresses.peer, fabric, device, peerDevice, rows, firstCorrupt },
    ]);
  } catch (error) {
    control.fail(error as Error);
    throw error;
  } finally {
    await side?.close();
    control.close();
  }
}

/**
 * Returns the fabrics that this side could use, the best first: devices, then shared memory when both sides
 * are on one host, then TCP. The last choice is a device without our fabric, which measures operations that
 * the fabrics do not have.
 */
function candidates(plan: Plan, control: Control, { fabric, device }: DialOptions): PerfFabric[] {
  if (fabric !== undefined) return [fabric];
  const { own, peer } = control.addresses;
  const hasDevice = whyNoVerbs(device) === '';
  const here: Readonly<Record<PerfFabric, boolean>> = {
    verbs: hasDevice || plan.manager,
    shm: own === peer,
    tcp: true,
    bare: hasDevice,
  };
  const order: readonly PerfFabric[] = ['verbs', 'shm', 'tcp', 'bare'];
  return order.filter((name) => here[name] && whyNotPlan(plan, name) === undefined);
}

const remedies: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no program listens there: start `rdma-rpc perf` on that side first',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name is unknown',
  EHOSTUNREACH: 'no route leads to it',
  ENETUNREACH: 'no route leads to it',
};

function connected({ host, port, timeoutMs, say }: DialOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const waiting = setTimeout(() => say?.(`connecting to ${host}:${port}`), noticedMs);
    socket.once('close', () => clearTimeout(waiting)).once('connect', () => clearTimeout(waiting));
    const fail = (why: string): void => {
      socket.destroy();
      reject(new PerfError(`cannot connect to ${host}:${port}: ${why}`));
    };
    const late = setTimeout(
      () =>
        fail(
          `no answer within ${timeoutMs / 1000} s (--timeout): check the address, and firewalls on the way`,
        ),
      timeoutMs,
    );
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
      clearTimeout(late);
      fail(remedies[code] ?? code);
    });
    socket.once('connect', () => {
      clearTimeout(late);
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}
