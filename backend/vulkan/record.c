//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

#include "shim.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE_FUNCTIONS(X) \
	X(vkCreateShaderModule) \
	X(vkDestroyShaderModule) \
	X(vkCreateDescriptorSetLayout) \
	X(vkDestroyDescriptorSetLayout) \
	X(vkCreatePipelineLayout) \
	X(vkDestroyPipelineLayout) \
	X(vkCreateComputePipelines) \
	X(vkDestroyPipeline) \
	X(vkCreateBufferView) \
	X(vkDestroyBufferView) \
	X(vkCreateDescriptorPool) \
	X(vkAllocateDescriptorSets) \
	X(vkUpdateDescriptorSets) \
	X(vkBeginCommandBuffer) \
	X(vkEndCommandBuffer) \
	X(vkCmdBindPipeline) \
	X(vkCmdBindDescriptorSets) \
	X(vkCmdPushConstants) \
	X(vkCmdDispatch) \
	X(vkCmdResetQueryPool) \
	X(vkCmdWriteTimestamp) \
	X(vkCmdCopyBuffer) \
	X(vkCmdPipelineBarrier) \
	X(vkQueueSubmit)

struct agpu_device {
	VkDevice device;
	VkQueue queue;
#define X(name) PFN_##name name;
	DEVICE_FUNCTIONS(X)
#undef X
	void *scratch; // of agpu_record, kept from call to call
	size_t scratch_size;
};

agpu_device *agpu_device_load(void *gipa, VkInstance instance, VkDevice device, VkQueue queue) {
	PFN_vkGetDeviceProcAddr get = (PFN_vkGetDeviceProcAddr)((PFN_vkGetInstanceProcAddr)gipa)(instance, "vkGetDeviceProcAddr");
	agpu_device *d = get ? calloc(1, sizeof *d) : NULL;
	if (!d) {
		return NULL;
	}
	d->device = device;
	d->queue = queue;
	int ok = 1;
#define X(name) ok &= (d->name = (PFN_##name)get(device, #name)) != NULL;
	DEVICE_FUNCTIONS(X)
#undef X
	if (!ok) {
		agpu_device_unload(d);
		return NULL;
	}
	return d;
}

void agpu_device_unload(agpu_device *d) {
	if (d) {
		free(d->scratch);
		free(d);
	}
}

VkResult agpu_program_create(agpu_device *d, VkPipelineCache cache, const uint32_t *code, size_t words, uint32_t buffers,
	uint32_t texels, uint32_t push_bytes, uint32_t subgroup, agpu_program *out, const char **stage) {
	VkShaderModule module = 0;
	memset(out, 0, sizeof *out);
	uint32_t bindings = buffers + texels;
	VkDescriptorSetLayoutBinding *b = calloc(bindings + 1, sizeof *b);
	if (!b) {
		*stage = "malloc";
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	for (uint32_t i = 0; i < bindings; i++) {
		b[i].binding = i;
		b[i].descriptorType = i < buffers ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
		b[i].descriptorCount = 1;
		b[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
	}
	VkDescriptorSetLayoutCreateInfo set_info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = bindings, .pBindings = b};
	*stage = "vkCreateDescriptorSetLayout";
	VkResult r = d->vkCreateDescriptorSetLayout(d->device, &set_info, NULL, &out->set_layout);
	free(b);
	if (r < 0) {
		out->set_layout = 0;
		return r;
	}
	VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = push_bytes};
	VkPipelineLayoutCreateInfo layout_info = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pSetLayouts = &out->set_layout,
		.pushConstantRangeCount = push_bytes > 0,
		.pPushConstantRanges = &push,
	};
	*stage = "vkCreatePipelineLayout";
	if ((r = d->vkCreatePipelineLayout(d->device, &layout_info, NULL, &out->layout)) < 0) {
		out->layout = 0;
		goto fail;
	}
	VkShaderModuleCreateInfo module_info = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = words * 4, .pCode = code};
	*stage = "vkCreateShaderModule";
	if ((r = d->vkCreateShaderModule(d->device, &module_info, NULL, &module)) < 0) {
		goto fail;
	}
	VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size_info = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, .requiredSubgroupSize = subgroup};
	VkComputePipelineCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.pNext = subgroup ? &size_info : NULL,
			.flags = subgroup ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT,
			.module = module,
			.pName = "main",
		},
		.layout = out->layout,
		.basePipelineIndex = -1,
	};
	*stage = "vkCreateComputePipelines";
	r = d->vkCreateComputePipelines(d->device, cache, 1, &info, NULL, &out->pipeline);
	d->vkDestroyShaderModule(d->device, module, NULL);
	if (r >= 0) {
		return r;
	}
	out->pipeline = 0;
fail:
	agpu_program_destroy(d, out);
	memset(out, 0, sizeof *out);
	return r;
}

void agpu_program_destroy(agpu_device *d, const agpu_program *p) {
	d->vkDestroyPipeline(d->device, p->pipeline, NULL);
	d->vkDestroyPipelineLayout(d->device, p->layout, NULL);
	d->vkDestroyDescriptorSetLayout(d->device, p->set_layout, NULL);
}

VkResult agpu_view_create(agpu_device *d, VkBuffer buffer, VkFormat format, VkDeviceSize offset, VkDeviceSize range, VkBufferView *out) {
	VkBufferViewCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .buffer = buffer, .format = format, .offset = offset, .range = range};
	return d->vkCreateBufferView(d->device, &info, NULL, out);
}

void agpu_view_destroy(agpu_device *d, VkBufferView view) {
	d->vkDestroyBufferView(d->device, view, NULL);
}

VkResult agpu_pool_create(agpu_device *d, uint32_t sets, uint32_t buffers, uint32_t texels, VkDescriptorPool *out) {
	VkDescriptorPoolSize sizes[] = {
		{.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = buffers},
		{.type = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, .descriptorCount = texels},
	};
	VkDescriptorPoolCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = sets, .poolSizeCount = 1 + (texels > 0), .pPoolSizes = sizes};
	return d->vkCreateDescriptorPool(d->device, &info, NULL, out);
}

// make_sets gives each dispatch with buffers its descriptor set, all in one allocation and one update.
static VkResult make_sets(agpu_device *d, VkDescriptorPool pool, const agpu_op *ops, uint32_t num_ops,
	const VkDescriptorBufferInfo *regions, const VkBufferView *views, VkDescriptorSet **out) {
	uint32_t num_sets = 0, num_writes = 0;
	for (uint32_t i = 0; i < num_ops; i++) {
		if (ops[i].kind == AGPU_DISPATCH && ops[i].regions > 0) {
			num_sets++;
			num_writes += ops[i].regions + ops[i].texels;
		}
	}
	*out = NULL;
	if (num_sets == 0) {
		return VK_SUCCESS;
	}
	size_t need = num_writes * sizeof(VkWriteDescriptorSet) + num_sets * (sizeof(VkDescriptorSet) + sizeof(VkDescriptorSetLayout));
	if (need > d->scratch_size) {
		free(d->scratch);
		d->scratch_size = need * 2;
		d->scratch = malloc(d->scratch_size);
		if (!d->scratch) {
			d->scratch_size = 0;
			return VK_ERROR_OUT_OF_HOST_MEMORY;
		}
	}
	VkWriteDescriptorSet *writes = d->scratch;
	VkDescriptorSet *sets = (VkDescriptorSet *)(writes + num_writes);
	VkDescriptorSetLayout *layouts = (VkDescriptorSetLayout *)(sets + num_sets);
	uint32_t s = 0;
	for (uint32_t i = 0; i < num_ops; i++) {
		if (ops[i].kind == AGPU_DISPATCH && ops[i].regions > 0) {
			layouts[s++] = ops[i].program.set_layout;
		}
	}
	VkDescriptorSetAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorPool = pool,
		.descriptorSetCount = num_sets,
		.pSetLayouts = layouts,
	};
	VkResult r = d->vkAllocateDescriptorSets(d->device, &info, sets);
	if (r < 0) {
		return r;
	}
	uint32_t w = 0;
	s = 0;
	for (uint32_t i = 0; i < num_ops; i++) {
		if (ops[i].kind != AGPU_DISPATCH || ops[i].regions == 0) {
			continue;
		}
		for (uint32_t j = 0; j < ops[i].regions; j++, w++) {
			writes[w] = (VkWriteDescriptorSet){
				.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
				.dstSet = sets[s],
				.dstBinding = j,
				.descriptorCount = 1,
				.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
				.pBufferInfo = regions++,
			};
		}
		for (uint32_t j = 0; j < ops[i].texels; j++, w++) {
			writes[w] = (VkWriteDescriptorSet){
				.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
				.dstSet = sets[s],
				.dstBinding = ops[i].regions + j,
				.descriptorCount = 1,
				.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
				.pTexelBufferView = views++,
			};
		}
		s++;
	}
	d->vkUpdateDescriptorSets(d->device, num_writes, writes, 0, NULL);
	*out = sets;
	return VK_SUCCESS;
}

static void barrier(agpu_device *d, VkCommandBuffer cmd, VkPipelineStageFlags dst_stage, VkAccessFlags dst_access) {
	VkMemoryBarrier b = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
		.dstAccessMask = dst_access,
	};
	d->vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, dst_stage, 0, 1, &b, 0,
		NULL, 0, NULL);
}

VkResult agpu_record(agpu_device *d, VkCommandBuffer cmd, VkDescriptorPool pool, const agpu_op *ops, uint32_t num_ops,
	const VkDescriptorBufferInfo *regions, const VkBufferView *views, const uint32_t *params, uint32_t host_read, VkQueryPool queries, uint32_t num_queries) {
	VkDescriptorSet *set;
	VkResult r = make_sets(d, pool, ops, num_ops, regions, views, &set);
	if (r < 0) {
		return r;
	}
	VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
	if ((r = d->vkBeginCommandBuffer(cmd, &begin)) < 0) {
		return r;
	}
	uint32_t query = 0;
	if (num_queries > 0) {
		d->vkCmdResetQueryPool(cmd, queries, 0, num_queries);
	}
	VkPipeline bound = 0;
	for (uint32_t i = 0; i < num_ops; i++) {
		const agpu_op *op = &ops[i];
		if (op->barrier) {
			barrier(d, cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
				VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
		}
		if (op->kind == AGPU_COPY) {
			VkBufferCopy region = {.srcOffset = op->src_offset, .dstOffset = op->dst_offset, .size = op->size};
			d->vkCmdCopyBuffer(cmd, op->src, op->dst, 1, &region);
			continue;
		}
		if (op->program.pipeline != bound) {
			bound = op->program.pipeline;
			d->vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, bound);
		}
		if (op->regions > 0) {
			d->vkCmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, op->program.layout, 0, 1, set++, 0, NULL);
		}
		if (op->params > 0) {
			d->vkCmdPushConstants(cmd, op->program.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, op->params * 4, params);
			params += op->params;
		}
		if (op->timed) {
			d->vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries, query++);
		}
		d->vkCmdDispatch(cmd, op->groups[0], op->groups[1], op->groups[2]);
		if (op->timed) {
			d->vkCmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, query++);
		}
	}
	if (host_read) {
		barrier(d, cmd, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
	}
	return d->vkEndCommandBuffer(cmd);
}

VkResult agpu_submit(agpu_device *d, VkCommandBuffer cmd, VkFence fence) {
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &cmd};
	return d->vkQueueSubmit(d->queue, 1, &info, fence);
}
