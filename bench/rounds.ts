/**
 * Runs scenarios on pairs of processes, with one pair for the scenarios that can share it, and makes a row
 * for each. It counts what could not be run, and what other processes on the machine disturbed. The
 * orchestrators (main.ts, against.ts, scale) use it, and sleep during the rounds.
 */
import type { Window } from './measure.ts';
import { type Node, ownNode } from './nodes.ts';
import { Pair } from './pair.ts';
import type { Peer } from './peer.ts';
import { pollingPeers } from './peers.ts';
import type { Placement } from './placement.ts';
import { disturbedText } from './report.ts';
import type { Row } from './rows.ts';
import { placementOf, type Scenario } from './scenarios.ts';

/**
 * `handshakesFirst`: V8 needs this number of handshakes to compile their code, which is a third of the cost
 * of the first thousand. The goal concerns new sessions of running servers, which have already compiled that
 * code.
 */
const fullWindow: Window = { warmupMs: 400, measureMs: 1000, handshakesFirst: 3000 };
const quickWindow: Window = { warmupMs: 150, measureMs: 200 };
/**
 * For programs as in the quick start, the first second is measured while everything is new. In the next
 * second, the remaining compilation, collection and first touches of memory take place: 256 MiB of arena take
 * 1.6 s where a fresh page costs 25 us.
 */
const plainWindow: Window = { firstMs: 1000, warmupMs: 2500, measureMs: 800 };
const quickPlainWindow: Window = { firstMs: 200, warmupMs: 400, measureMs: 200 };
/**
 * The pause (`restMs`) is long enough for an idle program to free memory. V8 begins to collect garbage in an
 * idle process after 8 s (kLongDelayMs in its src/heap/memory-reducer.h). The blocks of messages that an
 * application dropped are free from then on.
 */
const restWindow: Window = { warmupMs: 500, measureMs: 1500, restMs: 15_000 };
const quickRestWindow: Window = { warmupMs: 200, measureMs: 200, restMs: 500 };
/**
 * The first load of a process runs interpreted code. Therefore its first milliseconds, which this constant
 * counts, are not measured.
 */
const compileMs = 1000;
const quickCompileMs = 250;
/**
 * If the rest of the machine uses more CPU than this, in percent of one CPU, a measurement counts as
 * disturbed.
 */
const othersMaxPercent = 8;

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/**
 * Returns groups of scenarios that can share a pair of processes, because they have the same polling,
 * placement, network and number of connections. A scenario as in the quick start has a pair of its own.
 */
export function groups(chosen: readonly Scenario[]): Scenario[][] {
  const keyed = new Map<string, Scenario[]>();
  for (const scenario of chosen) {
    const key = `${scenario.polling} ${scenario.together} ${scenario.network} ${scenario.sessions} ${scenario.plain ? scenario.name : ''}`;
    keyed.set(key, [...(keyed.get(key) ?? []), scenario]);
  }
  return [...keyed.values()];
}

/** Leaves out the scenarios on one CPU where processes cannot be pinned. */
export function placeable(chosen: readonly Scenario[], placement: Placement | undefined): Scenario[] {
  if (placement === undefined) note('processes cannot be pinned here: scenarios on one CPU are left out');
  return chosen.filter((scenario) => placement !== undefined || !scenario.together);
}

export class Rounds {
  #failures = 0;
  #measured = 0;
  #disturbances = 0;
  readonly #quick: boolean;
  readonly #placement: Placement | undefined;

  /** If `placement` is undefined, processes are left to the scheduler. */
  constructor(quick: boolean, placement: Placement | undefined) {
    this.#quick = quick;
    this.#placement = placement;
  }

  /**
   * Runs one round of scenarios that share a pair, in order. A failure is reported, and its rows are left
   * out.
   */
  async run(
    load: () => Promise<Peer>,
    group: readonly Scenario[],
    label: string,
    node: Node = ownNode,
  ): Promise<Row[]> {
    const rows: Row[] = [];
    let pair: Pair | undefined;
    try {
      const peer = await load();
      if (peer.measure === undefined) pair = await Pair.start(peer, group[0]!, this.#placement, node);
      for (const [index, scenario] of group.entries()) {
        const row = await this.#row(peer, pair, scenario, index === 0, label);
        rows.push({ ...row, node: node.version });
      }
    } catch (error) {
      note(`${label} NOT RUN: ${error instanceof Error ? error.message : error}`);
      this.#failures++;
    } finally {
      await pair?.stop();
    }
    return rows;
  }

  /** Returns what a report must state about the conditions of the run. */
  remarks(): string[] {
    const remarks: string[] = [];
    if (this.#quick) remarks.push('A quick run: too short to compile and settle, so its figures say little.');
    if (this.#disturbances > 0)
      remarks.push(disturbedText(this.#disturbances, this.#measured, othersMaxPercent));
    return remarks;
  }

  /** Runs at the end. The process fails if a scenario did not run. */
  finish(): void {
    if (this.#failures > 0) note(`${this.#failures} group(s) did not run; their reasons are above`);
    process.exitCode = this.#failures > 0 ? 1 : 0;
  }

  /**
   * Returns how long the scenario is warmed up and measured. `first` is true when the scenario is the first
   * of its pair of processes.
   */
  #window({ kind, plain }: Scenario, first: boolean): Window {
    if (kind === 'rest') return this.#quick ? quickRestWindow : restWindow;
    if (plain) return this.#quick ? quickPlainWindow : plainWindow;
    const window = this.#quick ? quickWindow : fullWindow;
    return first ? { ...window, warmupMs: this.#quick ? quickCompileMs : compileMs } : window;
  }

  async #row(
    peer: Peer,
    pair: Pair | undefined,
    scenario: Scenario,
    first: boolean,
    label: string,
  ): Promise<Omit<Row, 'node'>> {
    const asked = this.#window(scenario, first);
    const { othersPercent, ...measurement } = await (pair?.run(scenario, asked) ??
      peer.measure!(scenario, asked));
    const disturbed = othersPercent > othersMaxPercent;
    this.#measured++;
    if (disturbed) this.#disturbances++;
    const calls = Math.round(measurement.callsPerSecond).toLocaleString('en-GB');
    const others = disturbed ? `, others used ${othersPercent.toFixed(0)} % of a CPU` : '';
    note(`${label} ${scenario.name}: ${calls} calls/s${others}`);
    return {
      scenario: scenario.name,
      peer: peer.name,
      fabric: scenario.network === 'tcp' ? 'tcp' : peer.fabric,
      payloadBytes: Math.max(scenario.payloadBytes, scenario.mixedBytes),
      inFlight: scenario.inFlight,
      besideBytes: scenario.besideBytes,
      ...measurement,
      // A program that measures itself starts its own processes.
      placement: placementOf(scenario, peer.measure === undefined ? this.#placement : undefined, {
        polls: pollingPeers.includes(peer.name),
        threads: peer.threads,
      }),
      disturbed,
    };
  }
}
