/** One side of a test: the native loops, in step with those of the peer by way of the control connection. Both roles use it. */
import { loadNative } from '../../runtime/native.ts';
import type { NativePerf, PerfOutcome, PerfStep } from '../../runtime/native-perf.ts';
import { type Control, PerfError } from './control.ts';
import { offerMessage, readOffer, readReport, readSent, reportMessage, sentMessage } from './messages.ts';
import { isLatency, type PerfFabric, type Plan, stepOf, whyNotPlan } from './plan.ts';
import type { Report } from './report.ts';
import { latencyOf, type Row, rowOf } from './row.ts';

export interface DeviceFlags {
  readonly device?: string;
  readonly gidIndex?: number;
}

export class Side {
  readonly #native: NativePerf;
  readonly #plan: Plan;
  readonly #control: Control;
  readonly #active: boolean;
  /** On each queue pair, in all steps so far. */
  #peerSent = 0;
  peerDevice = '';

  private constructor(native: NativePerf, plan: Plan, control: Control, active: boolean) {
    this.#native = native;
    this.#plan = plan;
    this.#control = control;
    this.#active = active;
  }

  /** Throws a PerfError when this machine, or its device, cannot. */
  static open(fabric: PerfFabric, plan: Plan, control: Control, active: boolean, flags: DeviceFlags): Side {
    const { test, connection, sizes } = plan;
    const why = whyNotPlan(plan, fabric);
    if (why !== undefined) throw new PerfError(why);
    const { own } = control.addresses;
    let native: NativePerf;
    try {
      native = loadNative().openPerf({
        ...plan,
        fabric,
        host: own,
        active,
        bytesMax: Math.max(...sizes),
        verbs: {
          address: own,
          ...(flags.device === undefined ? {} : { device: flags.device }),
          ...(flags.gidIndex === undefined ? {} : { gidIndex: flags.gidIndex }),
        },
      });
    } catch (error) {
      throw new PerfError((error as Error).message.replace(/^rdma-rpc: /, ''));
    }
    const { limits } = native;
    const cannot =
      Math.max(...sizes) > limits.messageMax
        ? `${limits.device} carries messages of up to ${limits.messageMax} bytes over ${connection}: a smaller --size`
        : test.startsWith('atomic') && !limits.atomic
          ? `${limits.device} has no atomic operations`
          : undefined;
    if (cannot !== undefined) {
      native.close();
      throw new PerfError(cannot);
    }
    return new Side(native, plan, control, active);
  }

  get device(): string {
    return this.#native.limits.device;
  }

  /** Tells the peer where this side is, hears where it is, and connects. */
  async connect(fabric: PerfFabric): Promise<void> {
    const { address, limits } = this.#native;
    this.#control.send(offerMessage({ fabric, device: limits.device, address }));
    const offer = readOffer(await this.#control.receive('address'));
    this.peerDevice = offer.device;
    // What is sent to a queue pair that is not connected yet is lost, over UC and UD for good.
    if (this.#active) await this.#control.receive('connecting');
    const connected = new Promise<string>((resolve) => {
      this.#control.onError = () => this.#native.stop(0);
      this.#native.connect(offer.address, resolve);
    });
    if (!this.#active) this.#control.send({ kind: 'connecting' });
    const why = await connected;
    if (why !== '') {
      // What the peer says is why it was stopped.
      if (why === 'stopped') await this.#control.receive('connected');
      throw new PerfError(`the two sides do not connect by ${fabric}: ${why}`);
    }
    this.#control.send({ kind: 'connected' });
    await this.#control.receive('connected');
  }

  /** One size, and the first message that was not what was sent. `together` ends when all peers of the listening side are ready. */
  async step(bytes: number, together: () => Promise<void>): Promise<{ row: Row; corrupt: string }> {
    const step = stepOf(this.#plan, bytes, this.#active);
    this.#native.prepare(step);
    if (this.#active) {
      this.#control.send({ kind: 'prepared' });
      await this.#control.receive('go', 0);
    } else {
      await this.#control.receive('prepared');
      await together();
      this.#control.send({ kind: 'go' });
    }
    const own = await this.#run(step);
    this.#control.send(reportMessage(own));
    const peer = readReport(await this.#control.receive('report'));
    const [client, server] = this.#active ? [own, peer] : [peer, own];
    const { test, bidirectional, validate } = this.#plan;
    const row = rowOf({
      bytes,
      latency: isLatency(test),
      bidirectional,
      validate,
      received: step.verb === 'send',
      answered: step.verb === 'send' || step.verb === 'write',
      client,
      server,
    });
    return { row, corrupt: own.firstCorrupt || peer.firstCorrupt };
  }

  async #run(step: PerfStep): Promise<Report> {
    const [native, control] = [this.#native, this.#control];
    control.onError = () => native.stop(0);
    let failed = false;
    let sent: (messages?: number) => void = () => undefined;
    const measured = new Promise<number | undefined>((resolve) => {
      sent = resolve;
    });
    const end = new Promise<PerfOutcome>((resolve) => {
      native.run(step, (what) => {
        if (typeof what === 'number') return sent(what);
        failed = what.error !== '';
        sent();
        resolve(what);
      });
    });
    if (step.measures) {
      const messages = await measured;
      if (messages !== undefined) control.send(sentMessage(messages));
    }
    let expected = 0;
    if (step.receives && !failed) {
      const heard = control.receive('measured', 0);
      // An error of this side waits for nobody, and what the peer says then is of no interest.
      heard.catch(() => undefined);
      const came = await Promise.race([heard, end]);
      if ('kind' in came) expected = readSent(came);
    }
    native.stop(expected);
    const ended = await end;
    if (ended.error !== '') throw new PerfError(ended.error);
    this.#peerSent += expected / this.#plan.queuePairs;
    const written = step.receives ? native.checkWritten(step, this.#peerSent) : undefined;
    const latencyUs = latencyOf(ended.latencyNs);
    return {
      messages: ended.messages,
      received: ended.received,
      elapsedNs: ended.elapsedNs,
      userNs: ended.userNs,
      systemNs: ended.systemNs,
      corrupt: written === undefined || written.corrupt === 0 ? ended.corrupt : written.corrupt,
      firstCorrupt: written?.firstCorrupt || ended.firstCorrupt,
      latencyUs,
      peakNs: ended.peakNs,
    };
  }

  close(): void {
    this.#native.close();
  }
}
