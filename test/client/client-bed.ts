/**
 * Makes a ClientSession on a scripted native side, with a count of how often each call settles. The tests of
 * the client endpoint are based on it.
 */

import { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { turnNow } from '../../runtime/boundary/time/deadlines.ts';
import { clientMethod } from '../../runtime/client/call/client-method.ts';
import type { Unsent } from '../../runtime/client/queue/unsent.ts';
import { CallExtras, type CallWishes } from '../../runtime/client/session/call-extras.ts';
import { ClientSession } from '../../runtime/client/session/client-session.ts';
import type { Metadata } from '../../runtime/core/metadata.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { EchoDefinition, EchoMessage, type EchoMessageInit } from '../runtime/gen/echo.rdma.ts';

export const echo = clientMethod(EchoDefinition.methods.echo, -1);
export const text = (value: string): Uint8Array => EchoMessage.encode({ text: value });

export interface BedOptions {
  inflightMax?: number;
  slots?: number;
  messageMaxBytes?: number;
  aligned?: boolean;
  copiedBytes?: number;
  newCopiedBytes?: number;
}

export function extras(given: CallWishes & { metadata?: Metadata }): CallExtras {
  return new CallExtras(given, given.metadata && encodeMetadata(given.metadata));
}

export class ClientBed {
  readonly native: FakeNative;
  readonly session: ClientSession;
  readonly context: FabricContext;
  readonly down: string[] = [];
  /** How often each started call has settled. */
  readonly settled: number[] = [];
  done = 0;
  /** Runs when a call has ended. */
  onDone: () => void = () => undefined;
  /** The server's reason for ending the session, when it arrives. */
  words: Promise<string | undefined> | undefined;
  lost = 0;
  reports = 0;
  /** Number of times that a silence was reported. */
  silences = 0;
  /** Whether calls that no handler has seen are requeued. `requeued` has the requeued calls. */
  requeues = false;
  readonly requeued: Unsent[] = [];

  constructor({
    inflightMax = 8,
    slots = 64,
    messageMaxBytes = 1e6,
    aligned = false,
    copiedBytes = 0,
    newCopiedBytes = 0,
  }: BedOptions = {}) {
    this.native = new FakeNative({ slots });
    const context = new FabricContext('sim', this.native);
    this.context = context;
    const session = context.sessions.create({
      role: 'client',
      inflightMax,
      messageMaxBytes: 1e6,
      peerMessageMaxBytes: messageMaxBytes,
    });
    const queue = {
      waiting: { size: 0 },
      pump: () => undefined,
      pumpAfter: () => undefined,
      awaitMemory: () => false,
      requeue: (call: Unsent) => this.requeues && this.requeued.push(call) > 0,
    };
    const target = { session, eagerBytes: 8192, messageMaxBytes, aligned, copiedBytes, newCopiedBytes };
    this.session = new ClientSession(context, target, inflightMax, queue, {
      onCallDone: () => {
        ++this.done;
        this.onDone();
      },
      onSessionLost: () => void ++this.lost,
      onSessionDown: (reason) => this.down.push(reason),
      lastWords: () => this.words,
      onConsecutiveErrors: () => void ++this.reports,
      onSilence: () => void ++this.silences,
      onRejected: () => undefined,
    });
  }

  get allSettledOnce(): boolean {
    return this.settled.every((times) => times === 1);
  }

  /**
   * Starts and publishes a call. With `publish` false, the call is started but not published. Returns
   * undefined when the session had no room.
   */
  call(
    request: EchoMessageInit,
    options: { timeoutMs?: number; extras?: CallExtras; publish?: boolean } = {},
  ): Promise<EchoMessage> | undefined {
    let started = false;
    const index = this.settled.length;
    const promise = new Promise<EchoMessage>((resolve) => {
      const deadlineMs = options.timeoutMs === undefined ? 0 : turnNow() + options.timeoutMs;
      this.settled.push(0);
      started = this.session.start(echo, request, deadlineMs, options.extras, (value) => {
        ++this.settled[index]!;
        resolve(value as EchoMessage);
      });
    });
    if (!started) {
      this.settled.pop();
      return undefined;
    }
    if (options.publish !== false) this.native.flush();
    promise.catch(() => undefined);
    return promise;
  }
}
