/**
 * The steps of reaching a server, in their order, and the timeline that measures them. `rdma-rpc ping` uses
 * this file.
 */
import { clockMs } from '../../runtime/clock.ts';
import type { FabricReason } from '../../runtime/control/frames.ts';
import type { ConnectionStep } from '../../runtime/control/handshake/connection-steps.ts';

/** Each step with its explanation. */
export const stepTexts = {
  resolve: 'the name gets its addresses',
  connect: 'the socket of the sideband connects',
  tls: 'the TLS handshake',
  welcome: 'the server answers the hello',
  attach: 'both sides make a queue pair',
  fabric: 'the queue pair of this side connects',
  answer: 'the first ping of the sideband is answered',
} as const;
export type StepName = keyof typeof stepTexts;
export const stepNames = Object.keys(stepTexts) as readonly StepName[];

export interface TimedStep {
  readonly step: StepName;
  readonly ms: number;
  /** The address or the fabric that the step concerned. */
  readonly about?: string;
  /** The reason why the step did not succeed, if another address or fabric was tried after it. */
  readonly failed?: string;
}

/** Rounds a time to microseconds. */
export const toMicroseconds = (ms: number): number => Math.round(ms * 1000) / 1000;

/** Measures the steps of one connection. Each step lasts from the end of the step before it. */
export class Timeline {
  readonly steps: TimedStep[] = [];
  /** The step that has begun and has not ended. */
  current: StepName;
  /** The reason why no other fabric was chosen. It is empty until a fabric is chosen. */
  others: readonly FabricReason[] = [];
  readonly #tls: boolean;
  readonly #onStep: ((step: TimedStep) => void) | undefined;
  readonly #beganMs = clockMs();
  #lastMs = this.#beganMs;

  /**
   * `tls` says whether a TLS handshake follows when the socket is connected. `onStep` is called with each
   * step when it has ended.
   */
  constructor(first: StepName, tls: boolean, onStep?: (step: TimedStep) => void) {
    this.current = first;
    this.#tls = tls;
    this.#onStep = onStep;
  }

  /** Time in milliseconds from the beginning to the end of the last step. */
  get totalMs(): number {
    return toMicroseconds(this.#lastMs - this.#beganMs);
  }

  /** Ends the current step, and begins the next step. */
  end(next: StepName, more: Pick<TimedStep, 'about' | 'failed'> = {}): void {
    const now = clockMs();
    const step = { step: this.current, ms: toMicroseconds(now - this.#lastMs), ...more };
    this.steps.push(step);
    this.#lastMs = now;
    this.current = next;
    this.#onStep?.(step);
  }

  /** Records a step as the handshake reports it. */
  readonly take = (step: ConnectionStep): void => {
    if (step.step === 'connected') this.end(this.#tls ? 'tls' : 'welcome');
    else if (step.step === 'secured') this.end('welcome');
    else if (step.step === 'welcomed') this.end('attach');
    else if (step.step === 'attached') this.end('fabric', { about: step.fabric });
    else if (step.step === 'unreachable') this.end('attach', { about: step.fabric, failed: step.reason });
    else {
      this.others = step.others;
      this.end('answer', { about: step.fabric });
    }
  };
}
