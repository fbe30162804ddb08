/**
 * The interceptor with which a server reports its load in the trailer of each response. The load consists of
 * its own measurements, or of values from the application. Clients with weighted round robin compute weights
 * from it. A stream brings the report of its end. The application passes it to `server.use` or to a scope of
 * services; it runs on the server's JS thread.
 */
import { clockMs } from '../clock.ts';
import type { Interceptor, RpcResponse } from '../core/interceptor.ts';
import { encodeLoadReport, type LoadReport, loadReportKey } from '../core/load-report.ts';
import type { Metadata } from '../core/metadata.ts';
import { loadWindowMs } from '../limits.ts';

/** Measures calls, failed calls and CPU time of this process over windows of a second. */
class LoadMeter {
  #sinceMs = clockMs();
  #cpuUs = cpuUs();
  #calls = 0;
  #failed = 0;

  answered(): void {
    ++this.#calls;
  }

  failed(): void {
    ++this.#failed;
  }

  /** Returns the figures of the last window when the window is over, or undefined before that. */
  take(): LoadReport | undefined {
    const nowMs = clockMs();
    const windowMs = nowMs - this.#sinceMs;
    if (windowMs < loadWindowMs) return undefined;
    const cpu = cpuUs();
    const report = {
      cpuUtilization: (cpu - this.#cpuUs) / 1000 / windowMs,
      rpsFractional: (this.#calls * 1000) / windowMs,
      eps: (this.#failed * 1000) / windowMs,
    };
    this.#sinceMs = nowMs;
    this.#cpuUs = cpu;
    this.#calls = 0;
    this.#failed = 0;
    return report;
  }
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/**
 * Returns an interceptor that adds a load report to the trailer of each response. `report` gets the figures
 * of the last second: calls and failed calls per second, and the CPU time of this process as a share of one
 * CPU. It returns the load to report: `(measured) => ({ ...measured, applicationUtilization: queue.fill })`.
 * By default the measured figures are reported. It is called once a second while calls are answered. When it
 * throws, or returns a figure that is not a number of at least 0, calls fail with INTERNAL.
 */
export function reportLoad(
  report: (measured: LoadReport) => LoadReport = (measured) => measured,
): Interceptor {
  if (typeof report !== 'function') throw new TypeError('reportLoad: the argument must be a function');
  const meter = new LoadMeter();
  let bytes: Uint8Array | undefined;
  const into = (trailer: Metadata | undefined): void => {
    const measured = meter.take();
    if (measured !== undefined) bytes = encodeLoadReport(report(measured));
    if (bytes !== undefined) trailer?.set(loadReportKey, bytes);
  };
  /**
   * A stream may last for hours, so the values that were reported at its beginning are replaced at its end.
   */
  async function* ending(messages: AsyncIterable<unknown>, trailer: Metadata): AsyncGenerator<unknown> {
    try {
      yield* messages;
    } catch (error) {
      meter.failed();
      throw error;
    } finally {
      into(trailer);
    }
  }
  return (next) => async (request) => {
    into(request.context?.trailer);
    meter.answered();
    let response: RpcResponse;
    try {
      response = await next(request);
    } catch (error) {
      meter.failed();
      throw error;
    }
    if (!response.stream) return response;
    return { ...response, message: ending(response.message, response.trailer) };
  };
}
