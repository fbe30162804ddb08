/**
 * Ends streams of responses that are no longer read. The library connect-es gives its callers an iterator
 * without `return()`. Therefore a loop that ends by `break` or an error does not end its stream. Such a
 * dropped stream would keep its stream slot and its handler as long as the connection lives. The garbage
 * collector finds dropped streams. When streams wait for a slot, this file triggers a collection. The
 * transport uses this file on its JS thread.
 */
import { clockMs } from '../../clock.ts';
import { collectPauseMs } from '../../limits.ts';
import { type Collector, collector } from '../../native/collector.ts';
import { nativeIfLoads } from '../../native/native.ts';

type Messages = AsyncGenerator<unknown, void, undefined>;

/** The owner of the streams: the part of a channel's queue that this file uses. */
export interface StreamPlaces {
  readonly openStreams: { readonly full: boolean } | undefined;
  readonly streams: { readonly size: number };
}

/** The object that connect-es holds while it reads the stream. */
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
/** Number of dropped streams that were found since the last triggered collection. */
let found = 0;
const dropped = new FinalizationRegistry<Messages>((messages) => {
  ++found;
  // This call has no effect if the stream has already ended.
  messages.return().catch(() => undefined);
});

/** Wraps `messages` for connect-es, so that the stream ends when connect-es drops the wrapper. */
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
/** Pause between two collections in ms. The time between collections grows while they find nothing. */
let pauseMs: number = collectPauseMs.first;

/**
 * Call this when a stream is about to be opened. Triggers collections now and then while the stream has to
 * wait for a slot and other streams may have been dropped. Together with the collections for calls that wait
 * for memory, they take at most a tenth of the thread's time. The collections become rarer while they find no
 * abandoned stream.
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
  // Waits for a collection that was triggered for another reason. That collection also finds dropped streams.
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
