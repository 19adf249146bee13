// Entry point of every page.

import { drawAll } from "./charts.js";
import { follow } from "./live.js";
import { makeSortable } from "./tables.js";

makeSortable();
drawAll();
follow();
