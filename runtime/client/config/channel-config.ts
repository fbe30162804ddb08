/**
 * The service configuration of a channel: given as an object, read from a file, or from the attributes of its
 * resolver's addresses. A wrong one is a warning that names the field, and the last good one stays. Owned by
 * a channel; clients read it when they make a call and its version has changed.
 */
import { textOf } from '../../core/foreign.ts';
import type { Warn } from '../../core/warnings.ts';
import type { OutlierConfig } from '../connections/outliers.ts';
import type { RetryBudget } from '../connections/retry-budget.ts';
import type { Server } from '../connections/servers.ts';
import { ConfigFile } from './config-file.ts';
import type { BalancingConfig } from './load-balancing-config.ts';
import { type CheckedServiceConfig, checkedServiceConfig, type ServiceConfig } from './service-config.ts';

/** The attribute of an address that has a service configuration as a JSON text. */
const attribute = 'serviceConfig';

const noHealthCheck =
  'service configuration: healthCheckConfig has no effect on this channel; give it healthCheck: healthCheck() of rdma-rpc/health';

/** The connections of a channel. */
interface Configured {
  balance(settings: BalancingConfig): void;
  /** Without an argument, the channel's own settings count again. */
  detectOutliers(settings: OutlierConfig | undefined): void;
  /** Returns false when the channel has no health check. */
  checkHealth(service: string | undefined): boolean;
}

/** The options that count instead of the configuration, when the application has given them. */
interface Given {
  readonly loadBalancing?: unknown;
  readonly outlierDetection?: unknown;
}

export class ChannelConfig {
  /** Grows with each configuration. */
  version = 0;
  current: CheckedServiceConfig | undefined;
  #onChange: (config: CheckedServiceConfig) => void = () => undefined;
  readonly #warn: Warn;
  /** True when the application has given one, so that the resolver's does not count. */
  readonly #given: boolean;
  readonly #file: ConfigFile | undefined;
  /** The last text, good or bad, so that each is checked and warned of once. */
  #text: string | undefined;

  /**
   * `given` is a configuration, or the path of a file. Throws for a wrong configuration, and a file that
   * cannot be read.
   */
  constructor(given: ServiceConfig | string | undefined, warn: Warn) {
    this.#warn = warn;
    this.#given = given !== undefined;
    if (typeof given === 'string') {
      const onText = (text: string): void => this.#take(`the file ${given}`, text);
      this.#file = new ConfigFile(given, onText, (fault) => this.#refuse(`the file ${given}`, fault));
      if (this.current === undefined) {
        this.close();
        // The same error as that of a later change, now for the caller.
        checkedServiceConfig(JSON.parse(this.#text!));
      }
    } else if (given !== undefined) this.#set(checkedServiceConfig(given));
  }

  /**
   * Applies what belongs to the whole channel, now and after each change.
   */
  apply(to: Configured, given: Given = {}, { budget }: { readonly budget: RetryBudget }): void {
    this.#onChange = ({ balancing, outliers, health, throttling }) => {
      if (balancing !== undefined && given.loadBalancing === undefined) to.balance(balancing);
      if (given.outlierDetection === undefined) to.detectOutliers(outliers);
      if (!to.checkHealth(health) && health !== undefined) this.#warn(noHealthCheck);
      if (throttling !== undefined) budget.resize(throttling.tokens, throttling.perSuccess);
    };
    if (this.current !== undefined) this.#onChange(this.current);
  }

  /** Takes the configuration of the first address that has one. */
  onServers(servers: readonly Server[]): void {
    if (this.#given) return;
    const having = servers.find(({ attributes }) => attributes?.[attribute] !== undefined);
    if (having !== undefined) this.#take(`the resolver's ${having.address}`, having.attributes![attribute]!);
  }

  close(): void {
    this.#file?.close();
  }

  #take(where: string, text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    try {
      this.#set(checkedServiceConfig(JSON.parse(text)));
    } catch (fault) {
      this.#refuse(where, fault);
    }
  }

  #refuse(where: string, fault: unknown): void {
    if (this.current === undefined && this.#given) return;
    this.#warn(`service configuration of ${where} is not used, the last good one stays: ${textOf(fault)}`);
  }

  #set(config: CheckedServiceConfig): void {
    for (const line of config.reports) this.#warn(`service configuration: ${line}`);
    this.current = config;
    ++this.version;
    this.#onChange(config);
  }
}

/** Returns the configuration of a channel; undefined when it has none and no resolver that may give one. */
export function configOf(
  { resolver }: { readonly resolver?: unknown },
  { serviceConfig }: { readonly serviceConfig?: ServiceConfig | string },
  warn: Warn,
): ChannelConfig | undefined {
  if (serviceConfig === undefined && resolver === undefined) return undefined;
  return new ChannelConfig(serviceConfig, warn);
}
