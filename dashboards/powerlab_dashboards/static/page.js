// Entry point of every page.

import { drawAll } from "./charts.js";
import { follow } from "./live.js";
import { makeSortable } from "./tables.js";
import { keepTimes } from "./times.js";

makeSortable();
drawAll();
follow(); // compares the parts as the server sent them, so before any is changed
keepTimes();
