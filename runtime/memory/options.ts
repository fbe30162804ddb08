/** The options of connectMemory() and memoryOf(). */
import type { OptionRules } from '../core/options.ts';
import { exposures, revokeMs } from './limits.ts';

export const memoryRules = {
  exposuresMax: { kind: 'integer', range: exposures },
  revokeMs: { kind: 'integer', range: revokeMs },
} as const satisfies OptionRules;
