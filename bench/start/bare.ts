/**
 * A Node process that does nothing. It shows the cost of any start.
 */
import { cpuUs, tell } from './first.ts';

tell(cpuUs());
process.exit(0);
