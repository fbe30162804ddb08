/**
 * One side of a test: the program with the loops, which the control connection synchronises with the peer's
 * program. Both roles use it.
 */
import { type Control, PerfError } from './control.ts';
import { offerMessage, readOffer, readReport, readSent, reportMessage, sentMessage } from './messages.ts';
import { isLatency, type PerfFabric, type Plan, stepOf, whyNotPlan } from './plan.ts';
import { Program } from './program.ts';
import type { Report } from './report.ts';
import { latencyOf, type Row, rowOf } from './row.ts';
import type { PerfStep } from './step.ts';

export interface DeviceFlags {
  readonly device?: string;
  readonly gidIndex?: number;
}

export class Side {
  readonly #program: Program;
  readonly #plan: Plan;
  readonly #control: Control;
  readonly #active: boolean;
  /** Number of the peer's messages on each queue pair, in all steps so far. */
  #peerSent = 0;
  peerDevice = '';

  private constructor(program: Program, plan: Plan, control: Control, active: boolean) {
    this.#program = program;
    this.#plan = plan;
    this.#control = control;
    this.#active = active;
  }

  /** Throws a PerfError when this machine or its device cannot run the test. */
  static async open(
    fabric: PerfFabric,
    plan: Plan,
    control: Control,
    active: boolean,
    flags: DeviceFlags,
  ): Promise<Side> {
    const { test, connection, sizes } = plan;
    const why = whyNotPlan(plan, fabric);
    if (why !== undefined) throw new PerfError(why);
    const { depth, receiveDepth, queuePairs, inlineMax, validate, events, seed } = plan;
    const { sharedReceives, manager, multicast } = plan;
    const program = await Program.open({
      fabric,
      connection,
      sharedReceives,
      manager,
      multicast,
      host: control.addresses.own,
      ...(flags.device === undefined ? {} : { device: flags.device }),
      ...(flags.gidIndex === undefined ? {} : { gidIndex: flags.gidIndex }),
      active,
      queuePairs,
      depth,
      receiveDepth,
      bytesMax: Math.max(...sizes),
      inlineMax,
      validate,
      events,
      seed,
    });
    const { limits } = program;
    const cannot =
      Math.max(...sizes) > limits.messageMax
        ? `${limits.device} carries messages of up to ${limits.messageMax} bytes over ${connection}: a smaller --size`
        : test.startsWith('atomic') && !limits.atomic
          ? `${limits.device} has no atomic operations`
          : undefined;
    if (cannot !== undefined) {
      await program.close();
      throw new PerfError(cannot);
    }
    return new Side(program, plan, control, active);
  }

  get device(): string {
    return this.#program.limits.device;
  }

  /** Exchanges addresses with the peer, and connects. */
  async connect(fabric: PerfFabric): Promise<void> {
    const { address, limits } = this.#program;
    this.#control.send(offerMessage({ fabric, device: limits.device, address }));
    const offer = readOffer(await this.#control.receive('address'));
    this.peerDevice = offer.device;
    // Over UC and UD, messages to a queue pair that is not connected yet are lost for good.
    if (this.#active) await this.#control.receive('connecting');
    this.#control.onError = () => this.#program.stop(0);
    const connected = this.#program.connect(offer.address);
    if (!this.#active) this.#control.send({ kind: 'connecting' });
    const why = await connected;
    if (why !== '') {
      // The program was stopped because of a message of the peer. `receive` throws the reason in that
      // message.
      if (why === 'stopped') await this.#control.receive('connected');
      throw new PerfError(`the two sides do not connect by ${fabric}: ${why}`);
    }
    this.#control.send({ kind: 'connected' });
    await this.#control.receive('connected');
  }

  /**
   * Runs one size, and returns the first message with wrong content. `together` resolves when all peers of
   * the listening side are ready.
   */
  async step(bytes: number, together: () => Promise<void>): Promise<{ row: Row; corrupt: string }> {
    const step = stepOf(this.#plan, bytes, this.#active);
    await this.#program.prepare(step);
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
    const [program, control] = [this.#program, this.#control];
    control.onError = () => program.stop(0);
    let failed = false;
    let sent: (messages?: number) => void = () => undefined;
    const measured = new Promise<number | undefined>((resolve) => {
      sent = resolve;
    });
    const end = program.run(step, sent).finally(() => sent());
    end.then(
      ({ error }) => {
        failed = error !== '';
      },
      () => {
        failed = true;
      },
    );
    if (step.measures) {
      const messages = await measured;
      if (messages !== undefined) control.send(sentMessage(messages));
    }
    let expected = 0;
    if (step.receives && !failed) {
      const heard = control.receive('measured', 0);
      // After an error of this side, the peer's answer is not awaited and its error is ignored.
      heard.catch(() => undefined);
      const came = await Promise.race([heard, end]);
      if ('kind' in came) expected = readSent(came);
    }
    program.stop(expected);
    const ended = await end;
    if (ended.error !== '') throw new PerfError(ended.error);
    this.#peerSent += expected / this.#plan.queuePairs;
    const written = step.receives ? await program.checkWritten(step, this.#peerSent) : undefined;
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

  close(): Promise<void> {
    return this.#program.close();
  }
}
