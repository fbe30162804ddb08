/**
 * `rdma-rpc ping` with one connection: first its steps, then round trips on its session.
 */
import { firstAnswer, reach, Stopped, type Target, timelineFor } from './reach.ts';
import { type PingResult, resultOf, roundLine, roundTripLines, sessionLines, stepLine } from './result.ts';
import { makeRounds, type Round } from './rounds.ts';
import type { Session } from './session.ts';

/**
 * Passes each line to `say` when it is known. Resolves with the result. The result has an error when the
 * server was not reached or has not answered.
 */
export async function pingOnce(
  address: string,
  target: Target,
  { count, interval }: { readonly count: number; readonly interval: number },
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<PingResult> {
  const timeline = timelineFor(target, (step) => say(stepLine(step)));
  const rounds: Round[] = [];
  let session: Session | undefined;
  let stopped: Stopped | undefined;
  try {
    session = await reach(target, timeline, signal);
    if (session.pings) await firstAnswer(session, timeline);
    const { summary } = session;
    for (const line of sessionLines(summary, timeline)) say(line);
    const onRound = (round: Round, number: number): void => {
      rounds.push(round);
      say(roundLine(round, number, summary.fabric));
    };
    await makeRounds(session, { count, intervalMs: interval }, onRound, signal);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    stopped = error;
  }
  const summary = session?.summary;
  if (summary !== undefined) for (const line of roundTripLines(rounds, summary.fabric)) say(line);
  await session?.close();
  return resultOf(address, timeline, summary, rounds, stopped);
}
