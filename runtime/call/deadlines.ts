/** The one timer wheel of this JS thread, driven by a Node timer that never keeps the process alive by itself. */
import { TimerWheel } from './timer-wheel.ts';

let timer: NodeJS.Timeout | undefined;

export const deadlines: TimerWheel = new TimerWheel(performance.now(), (delayMs) => {
  clearTimeout(timer);
  timer = setTimeout(() => deadlines.run(performance.now()), delayMs);
  timer.unref();
});
