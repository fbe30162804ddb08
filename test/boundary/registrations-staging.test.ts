/**
 * Tests that calls leave no memory behind when their buffers are copied through staging memory. See
 * registrations.ts for the test itself.
 */
import { configure } from 'rdma-rpc';
import { nothingStays } from './registrations.ts';

configure({ exposure: 'staging' });

// All large requests are copied through staging memory, which has no room for dozens of 5 MiB at once.
nothingStays(256, 256 * 1024);
