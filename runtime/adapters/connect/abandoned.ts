/**
 * Streams of responses that are no longer read but have not been ended. connect-es gives its callers an
 * iterator without `return()`, so a loop left by `break` or an error does not end its stream: it would keep
 * its stream slot, and its handler, as long as the connection lives. Such dropped streams are found by the
 * garbage collector; when streams are waiting for a slot, a collection is triggered. Used by the transport,
 * on its JS thread.
 */
import { clockMs } from '../../clock.ts';
import { collectPauseMs } from '../../limits.ts';
import { type Collector, collector } from '../../native/collector.ts';
import { nativeIfLoads } from '../../native/native.ts';

type Messages = AsyncGenerator<unknown, void, undefined>;

/** The owner of the streams: the used part of a channel's queue. */
export interface StreamPlaces {
  readonly openStreams: { readonly full: boolean } | undefined;
  readonly streams: { readonly size: number };
}

/** The object that connect-es holds, and finally drops. */
class Held implements AsyncIterableIterator<unknown> {
  readonly #messages: Messages;
  constructor(messages: Messages) {
    this.#messages = messages;
  }
  [Symbol.asyncIterator](): this {
    return this;
  }
  next(): Promise<IteratorResult<unknown>> {
    return this.#messages.next();
  }
  return(): Promise<IteratorResult<unknown>> {
    return this.#messages.return();
  }
}

/** Number of streams of this thread that have begun and not ended. */
let open = 0;
/** Number of dropped streams found since the last triggered collection. */
let found = 0;
const dropped = new FinalizationRegistry<Messages>((messages) => {
  ++found;
  // No effect if it has already ended.
  messages.return().catch(() => undefined);
});

/** Wraps `messages` for connect-es, so that the stream ends when it is dropped. */
export function endedWhenDropped(messages: Messages): AsyncIterable<unknown> {
  const counted = (async function* (): Messages {
    ++open;
    try {
      yield* messages;
    } finally {
      --open;
    }
  })();
  const held = new Held(counted);
  dropped.register(held, counted);
  return held;
}

let collect: Collector | undefined | 'not looked up' = 'not looked up';
let timer: NodeJS.Timeout | undefined;
let nextMs = 0;
/** Pause between two collections; it grows while they find nothing. */
let pauseMs: number = collectPauseMs.first;

/**
 * Call when a stream is about to be opened. While it has to wait for a slot, and other streams might have
 * been dropped, collections are triggered now and then: together with those for calls that wait for memory
 * they get a tenth of the thread's time, and become rare when they find nothing.
 */
export function findDropped(places: StreamPlaces): void {
  if (places.openStreams?.full === true || places.streams.size > 0) schedule(places);
}

function schedule(places: StreamPlaces): void {
  if (collect === 'not looked up') collect = collector();
  if (timer !== undefined || collect === undefined) return;
  timer = setTimeout(look, Math.max(1, nextMs - clockMs()), places, collect).unref();
}

function look(places: StreamPlaces, now: Collector): void {
  timer = undefined;
  if (places.streams.size === 0 || open === 0) return;
  const began = clockMs();
  // A collection triggered for another reason finds dropped streams, too.
  const native = nativeIfLoads();
  const waitMs = native?.collectionWaitMs() ?? 0;
  if (waitMs > 0) nextMs = began + waitMs;
  else {
    pauseMs = found > 0 ? collectPauseMs.first : Math.min(collectPauseMs.max, 2 * pauseMs);
    found = 0;
    now('all');
    const ended = clockMs();
    native?.collectionDone(ended - began);
    nextMs = ended + pauseMs;
  }
  schedule(places);
}
